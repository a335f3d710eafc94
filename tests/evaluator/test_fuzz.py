"""Candidates from a grammar, with verdicts that are known without the evaluator: what is faithful is correct, what is not is
wrong.

A problem is a chain of operations on rows, with parameters or without, and a reduction at its end or none; its candidate is a
kernel that is written from the same chain, with one mutation or none. Whether a mutation matters is found out by evaluating both
chains in float64; where that is close, nothing is asked.

    make test                                            a few cases, always the same
    RLKERNEL_FUZZ=2000 pytest tests/evaluator/test_fuzz.py    that many, other ones each time
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from rlkernel.evaluator.config import EvaluatorConfig, Limits
from rlkernel.integrations.service import Service, open_service
from rlkernel.types import Problem, Status

CASES = int(os.environ.get("RLKERNEL_FUZZ", "24"))
BATCH = 4
ROWS, SMALL_ROWS = 4096, 5

OPS = {
    "relu": ("torch.relu({v})", "tl.maximum({v}, 0.0)"),
    "abs": ("torch.abs({v})", "tl.abs({v})"),
    "square": ("({v} * {v})", "({v} * {v})"),
    "tanh": ("torch.tanh({v})", "(2 * tl.sigmoid(2 * {v}) - 1)"),
    "sigmoid": ("torch.sigmoid({v})", "tl.sigmoid({v})"),
    "scale": ("({v} * 1.7)", "({v} * 1.7)"),
    "shift": ("({v} + 0.3)", "({v} + 0.3)"),
    "clamp": ("torch.clamp({v}, -0.9, 1.1)", "tl.minimum(tl.maximum({v}, -0.9), 1.1)"),
    "leaky": ("F.leaky_relu({v}, 0.1)", "tl.where({v} > 0, {v}, 0.1 * {v})"),
    "bias": ("({v} + self.bias)", "({v} + tl.load(bias + c, mask=m, other=0.0).to(tl.float32))"),
    "gain": ("({v} * self.gain)", "({v} * tl.load(gain + c, mask=m, other=0.0).to(tl.float32))"),
}
"""Name -> what it is in torch and in a kernel."""
REDUCTIONS = {
    "none": ("{v}", None),
    "sum": ("{v}.sum(1)", "tl.sum(tl.where(m, v, 0.0), 0)"),
    "mean": ("{v}.mean(1)", "tl.sum(tl.where(m, v, 0.0), 0) / C"),
    "max": ("{v}.amax(1)", 'tl.max(tl.where(m, v, float("-inf")), 0)'),
    "softmax": ("torch.softmax({v}.float(), 1).to({v}.dtype)", None),
    "center": ("({v} - {v}.mean(1, keepdim=True))", None),
}
DTYPES = {"float32": "", "float16": ".half()", "bfloat16": ".bfloat16()"}
WRONG = {
    "drop": "one operation is left out",
    "tail": "the last columns are not read",
    "constant": "a constant is another one",
    "row": "every row is the one before",
    "zero": "each seventh element is zero",
    "ones": "parameters are taken for what they begin as",
}


@dataclass(frozen=True)
class Fuzzed:
    """A problem, a candidate for it, and what the candidate does wrong: "" if nothing."""

    ops: tuple[str, ...]
    reduction: str
    dtype: str
    columns: int
    wrong: str
    place: int
    uniform: bool

    @property
    def reference(self) -> str:
        value = "x"
        for op in self.ops:
            value = OPS[op][0].format(v=value)
        value = REDUCTIONS[self.reduction][0].format(v=f"({value})")
        made = f"torch.{'rand' if self.uniform else 'randn'}(R, C){DTYPES[self.dtype]}"
        return f"""import torch
import torch.nn as nn
import torch.nn.functional as F
R, C = {ROWS}, 1024
SMALL = {{"R": {SMALL_ROWS}, "C": {self.columns}}}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(C, dtype=torch.{self.dtype}))
        self.gain = nn.Parameter(torch.ones(C, dtype=torch.{self.dtype}))
    def forward(self, x):
        return {value}
def get_inputs():
    return [{made}]
def get_init_inputs():
    return []
"""

    @property
    def candidate(self) -> str:
        lines = [f"v = {OPS[op][1].format(v='v')}" for op in self._kernel_ops()]
        if self.wrong == "constant":
            lines.append("v = v * 1.25")
        if self.reduction == "softmax":
            lines += ['v = tl.where(m, v, float("-inf"))', "v = tl.exp(v - tl.max(v, 0))", "v = v / tl.sum(v, 0)"]
        if self.reduction == "center":
            lines += ["v = v - tl.sum(tl.where(m, v, 0.0), 0) / C"]
        if self.wrong == "zero":
            lines.append("v = tl.where((c + r) % 7 == 3, 0.0, v)")
        reduced = REDUCTIONS[self.reduction][1]
        store = f"tl.store(y + r, {reduced})" if reduced else "tl.store(y + r * C + c, v, mask=m)"
        shape = "x.shape[0]" if reduced else "x.shape"
        row = "tl.maximum(r - 1, 0)" if self.wrong == "row" else "r"
        seen = "(c < C - C // 8)" if self.wrong == "tail" else "m"
        body = "\n    ".join([*lines, store])
        return f"""import torch
import torch.nn as nn
import triton
import triton.language as tl
C = 1024
@triton.jit
def kernel(x, bias, gain, y, C, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < C
    v = tl.load(x + {row} * C + c, mask={seen}, other=0.0).to(tl.float32)
    {body}
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(C, dtype=torch.{self.dtype}))
        self.gain = nn.Parameter(torch.ones(C, dtype=torch.{self.dtype}))
    def forward(self, x):
        y = torch.empty({shape}, device=x.device, dtype=x.dtype)
        kernel[(x.shape[0],)](x, self.bias, self.gain, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""

    def _kernel_ops(self) -> list[str]:
        if self.wrong == "drop":
            place = self.place % len(self.ops)
            return [op for index, op in enumerate(self.ops) if index != place]
        return [op for op in self.ops if not (self.wrong == "ones" and op in ("bias", "gain"))]

    def difference(self) -> float:
        """How far the mutation is from the reference, in float64, relative to the norm: the least over three draws of each
        kind."""
        least = []
        for kind in range(6):
            generator = torch.Generator().manual_seed(kind)
            shape = (SMALL_ROWS, self.columns)
            x = (torch.rand if self.uniform else torch.randn)(shape, generator=generator, dtype=torch.float64)
            bias, gain = (torch.rand(self.columns, generator=generator, dtype=torch.float64) for _ in range(2))
            if kind < 3:
                bias, gain = bias * 0, gain * 0 + 1
            else:
                x, bias, gain = 8 * (x - x.mean() * self.uniform), bias - 0.5, gain + 0.5
            good, bad = self._value(x, bias, gain, faithful=True), self._value(x, bias, gain, faithful=False)
            if bool(torch.isfinite(good).all()):
                least.append(float((bad - good).norm() / good.norm().clamp_min(1e-30)))
        return max(least, default=0.0)

    def _value(self, x: torch.Tensor, bias: torch.Tensor, gain: torch.Tensor, *, faithful: bool) -> torch.Tensor:
        if not faithful and self.wrong == "row":
            x = torch.cat([x[:1], x[:-1]])
        if not faithful and self.wrong == "tail":
            x = torch.where(torch.arange(self.columns) < self.columns - self.columns // 8, x, 0.0)
        owner = type("Owner", (), {"bias": bias, "gain": gain})
        names = {"torch": torch, "F": torch.nn.functional, "self": owner}
        value = x
        for op in self.ops if faithful else self._kernel_ops():
            value = eval(OPS[op][0].format(v="v"), {**names, "v": value})
        if not faithful and self.wrong == "constant":
            value = value * 1.25
        reduction = REDUCTIONS[self.reduction][0]
        if not faithful and self.wrong == "zero":
            rows, columns = torch.arange(x.shape[0])[:, None], torch.arange(self.columns)[None, :]
            gone = (rows + columns) % 7 == 3
            if REDUCTIONS[self.reduction][1] is None:
                whole: torch.Tensor = eval(reduction.format(v="v"), {**names, "v": value})
                return torch.where(gone, 0.0, whole)
            value = torch.where(gone, 0.0, value)
        made: torch.Tensor = eval(reduction.format(v="v"), {**names, "v": value})
        return made


@st.composite
def cases(draw: st.DrawFn) -> Fuzzed:
    ops = tuple(draw(st.lists(st.sampled_from(sorted(OPS)), min_size=1, max_size=4)))
    case = Fuzzed(
        ops, draw(st.sampled_from(sorted(REDUCTIONS))), draw(st.sampled_from(sorted(DTYPES))),
        draw(st.sampled_from([33, 64, 100, 127])), draw(st.sampled_from(["", "", "", *WRONG])), draw(st.integers(0, 3)),
        draw(st.booleans()),
    )  # fmt: skip
    assume(not (case.wrong == "ones" and not {"bias", "gain"} & set(ops)))
    if case.wrong:
        assume(case.difference() > 0.1)
    return case


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    config = EvaluatorConfig(limits=Limits(trace_seconds=20, run_seconds=40))
    with open_service(device="cpu", jobs=2, config=config) as opened:
        yield opened


@pytest.mark.timeout(24 * 3600)
def test_verdicts_of_generated_candidates(service: Service) -> None:
    wrong: list[str] = []

    @settings(
        max_examples=max(1, CASES // BATCH), deadline=None, database=None, derandomize="RLKERNEL_FUZZ" not in os.environ,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.lists(cases(), min_size=BATCH, max_size=BATCH))
    def judge(batch: list[Fuzzed]) -> None:
        waiting = [(case, service.submit(Problem("fuzz/chain", 1, "train", case.reference), case.candidate)) for case in batch]
        for case, future in waiting:
            result = future.result()
            good = result.status in ((Status.INCORRECT,) if case.wrong else (Status.CORRECT,))
            if not good:
                wrong.append(f"{case}: {result.status} {result.detail}")

    judge()
    assert not wrong, "\n".join(wrong)
