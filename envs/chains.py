"""Elementwise chains: one operation per line on a (ROWS, COLS) tensor, as problems in KernelBench's file format.

`OPS` is the closed set of operations, each with its line in torch and its line in Triton. `generate` draws problems from a
seed and keeps only chains where every operation matters; `parse` reads the operations back from a reference's text, so that
the teacher works on any file in this format, not only on generated ones.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import torch

from rlkernel.types import Problem, Split

TORCH_SCOPE = {"torch": torch, "F": torch.nn.functional}


@dataclass(frozen=True, slots=True)
class Op:
    """One operation. `torch` and `triton` are its lines, with `{0}` and `{1}` where the constants stand; `generate` draws from
    `constants`."""

    name: str
    torch: str
    triton: str
    constants: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One operation with its constants as they are written, e.g. `Step(scale, ("0.5",))`."""

    op: Op
    constants: tuple[str, ...] = ()

    @property
    def torch(self) -> str:
        return self.op.torch.format(*self.constants)

    @property
    def triton(self) -> str:
        return self.op.triton.format(*self.constants)


_POSITIVE = (
    ("0.1",),
    ("0.2",),
    ("0.25",),
    ("0.3",),
    ("0.5",),
    ("0.7",),
    ("0.75",),
    ("1.25",),
    ("1.5",),
    ("2.0",),
    ("2.5",),
    ("3.0",),
)
_LIMITS = (("-1.0", "1.0"), ("-0.5", "0.5"), ("-1.5", "1.5"), ("-2.0", "2.0"), ("-1.0", "2.0"), ("-0.5", "1.5"), ("0.0", "1.0"))

OPS: tuple[Op, ...] = (
    Op("bias", "x = x + self.bias", "x = x + tl.load(b_ptr + i % cols, mask=m)"),
    Op("scale", "x = x * {0}", "x = x * {0}", (*_POSITIVE, ("4.0",))),
    Op("shift", "x = x + {0}", "x = x + {0}", (*_POSITIVE, ("1.0",))),
    Op("drop", "x = x - {0}", "x = x - {0}", (*_POSITIVE, ("1.0",))),
    Op("relu", "x = F.relu(x)", "x = tl.maximum(x, 0.0)"),
    Op("gelu", "x = F.gelu(x)", "x = 0.5 * x * (1.0 + tl.erf(x * 0.70710678))"),
    Op("silu", "x = F.silu(x)", "x = x * tl.sigmoid(x)"),
    Op("sigmoid", "x = torch.sigmoid(x)", "x = tl.sigmoid(x)"),
    Op("tanh", "x = torch.tanh(x)", "x = 2.0 * tl.sigmoid(2.0 * x) - 1.0"),
    Op("abs", "x = x.abs()", "x = tl.abs(x)"),
    Op("clamp", "x = torch.clamp(x, {0}, {1})", "x = tl.minimum(tl.maximum(x, {0}), {1})", _LIMITS),
    Op("leaky", "x = F.leaky_relu(x, {0})", "x = tl.where(x > 0, x, x * {0})", (("0.1",), ("0.2",), ("0.3",))),
    Op("softplus", "x = F.softplus(x)", "x = tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))"),
    Op("square", "x = x * x", "x = x * x"),
)
BY_NAME = {op.name: op for op in OPS}

_TEMPLATE = '''"""{title}."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = {rows}
COLS = {cols}
SMALL = {{"ROWS": {small_rows}, "COLS": {small_cols}}}

class Model(nn.Module):
{init}    def forward(self, x):
{body}
        return x

def get_inputs():
    return [torch.randn(ROWS, COLS)]

def get_init_inputs():
    return []
'''
_INIT = """    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))

"""
SHAPES = ((4096, 8192), (8192, 4096), (2048, 8192), (4096, 4096), (8192, 8192), (4096, 5120))
SMALL_SHAPES = ((16, 96), (12, 80), (10, 112), (24, 72), (20, 88), (18, 104))


def chain_problem(
    steps: tuple[Step, ...],
    *,
    shape: tuple[int, int] = SHAPES[0],
    small: tuple[int, int] = SMALL_SHAPES[0],
    split: Split = "train",
) -> Problem:
    """The chain as a level-2 problem named after its operations and constants.

    >>> chain_problem((Step(BY_NAME["bias"]), Step(BY_NAME["scale"], ("0.5",)))).name
    'level2/chain_bias_scale0.5_4096x8192'
    """
    names = "_".join(step.op.name + "_".join(step.constants) for step in steps)
    source = _TEMPLATE.format(
        title=", ".join(step.op.name for step in steps).capitalize(),
        rows=shape[0],
        cols=shape[1],
        small_rows=small[0],
        small_cols=small[1],
        init=_INIT if has_bias(steps) else "",
        body="\n".join(f"        {step.torch}" for step in steps),
    )
    return Problem(f"level2/chain_{names}_{shape[0]}x{shape[1]}", 2, split, source)


def has_bias(steps: tuple[Step, ...]) -> bool:
    return any(step.op.name == "bias" for step in steps)


def generate(
    count: int, *, seed: int, split: Split = "train", without: frozenset[tuple[str, ...]] = frozenset()
) -> tuple[Problem, ...]:
    """`count` different chains of 2 to 6 operations, none degenerate.

    without: sequences of operation names to leave out (`names_of` of another split's chains), so that splits share no chain,
    not even up to constants.
    """
    rng = random.Random(seed)
    problems: dict[str, Problem] = {}
    while len(problems) < count:
        steps = draw(rng)
        if names_of(steps) in without or degenerate(steps):
            continue
        problem = chain_problem(steps, shape=rng.choice(SHAPES), small=rng.choice(SMALL_SHAPES), split=split)
        problems.setdefault(problem.name, problem)
    return tuple(problems.values())


def draw(rng: random.Random) -> tuple[Step, ...]:
    """Draw a chain of 2 to 6 operations, none of them twice and at most one bias. It may be degenerate."""
    length = rng.choices((2, 3, 4, 5, 6), weights=(3, 4, 4, 3, 2))[0]
    ops = rng.sample(OPS, length)
    return tuple(Step(op, rng.choice(op.constants) if op.constants else ()) for op in ops)


def names_of(steps: tuple[Step, ...]) -> tuple[str, ...]:
    return tuple(step.op.name for step in steps)


def degenerate(steps: tuple[Step, ...], tolerance: float = 0.03) -> str | None:
    """Why the chain is no fair problem, or None: nearly constant output, or an operation that hardly changes it.

    The chain is run on 4096 normal inputs and biases. The measures are relative to the output's standard deviation.
    """
    whole = run(steps)
    spread = float(whole.std())
    if not torch.isfinite(whole).all():
        return "the output is not finite"
    if spread < tolerance * max(1.0, float(whole.abs().mean())):
        return "the output is nearly constant"
    values, counts = torch.unique(whole, return_counts=True)
    if int(counts.max()) > 0.6 * whole.numel():
        return f"most of the output is {float(values[counts.argmax()]):.3g}"
    for index, step in enumerate(steps):
        rest = run(steps[:index] + steps[index + 1 :])
        if float((whole - rest).abs().mean()) < tolerance * spread:
            return f"without `{step.torch}` the output is nearly the same"
    return None


def run(steps: tuple[Step, ...]) -> torch.Tensor:
    """The chain's output on fixed normal inputs, by executing its torch lines: float32, 4096 values."""
    generator = torch.Generator().manual_seed(0)
    scope = {"x": torch.randn(4096, generator=generator), "bias": torch.randn(4096, generator=generator)}
    for step in steps:
        exec(step.torch.replace("self.bias", "bias"), TORCH_SCOPE, scope)
    return scope["x"]


_NUMBER = r"(-?\d+(?:\.\d+)?)"
_PATTERNS = [(op, re.compile(re.sub(r"\\\{\d\\\}", lambda _: _NUMBER, re.escape(op.torch)))) for op in OPS]


def parse(source: str) -> tuple[Step, ...] | None:
    """The operations of a reference in the chain format, or None if a line of `forward` is none of `OPS`.

    >>> [step.triton for step in parse("    def forward(self, x):\\n        x = x * 0.5\\n        return x\\n")]
    ['x = x * 0.5']
    """
    _, found, body = source.partition("def forward(self, x):\n")
    if not found:
        return None
    steps: list[Step] = []
    for line in body.splitlines():
        text = line.strip()
        if text == "return x":
            return tuple(steps) or None
        match = next(((op, m) for op, pattern in _PATTERNS if (m := pattern.fullmatch(text))), None)
        if match is None:
            return None
        steps.append(Step(match[0], match[1].groups()))
    return None


def columns(source: str) -> int:
    """The full-size COLS of a chain. Raises ValueError when the text does not assign it."""
    match = re.search(r"^COLS = (\d+)$", source, re.MULTILINE)
    if match is None:
        raise ValueError("the reference assigns no `COLS = ...`; a chain has ROWS and COLS at the top of the file")
    return int(match[1])
