from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from envs.chains import (
    BY_NAME,
    OPS,
    TORCH_SCOPE,
    Op,
    Step,
    chain_problem,
    columns,
    degenerate,
    generate,
    names_of,
    parse,
)
from rlkernel.reference import load_reference

TL = SimpleNamespace(
    maximum=lambda x, y: torch.maximum(x, torch.as_tensor(y)),
    minimum=lambda x, y: torch.minimum(x, torch.as_tensor(y)),
    where=lambda c, x, y: torch.where(c, x, y),
    sigmoid=torch.sigmoid,
    exp=torch.exp,
    log=torch.log,
    abs=torch.abs,
    erf=torch.erf,
    load=lambda pointer, mask: pointer,
)


def steps(*names: str) -> tuple[Step, ...]:
    return tuple(Step(BY_NAME[name], BY_NAME[name].constants[0] if BY_NAME[name].constants else ()) for name in names)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_the_triton_line_computes_what_the_torch_line_does(op: Op) -> None:
    x = torch.linspace(-6, 6, 1001, dtype=torch.float64)
    step = Step(op, op.constants[0] if op.constants else ())
    in_torch = {"x": x, "self": SimpleNamespace(bias=torch.tensor(0.25))}
    exec(step.torch, TORCH_SCOPE, in_torch)
    in_triton = {"x": x, "b_ptr": torch.tensor(0.25), "i": 0, "cols": 1, "m": None, "tl": TL}
    exec(step.triton, in_triton)
    # 0.70710678 has eight digits, hence 1e-8.
    torch.testing.assert_close(in_triton["x"], in_torch["x"], rtol=1e-7, atol=1e-8)


def test_parse_reads_back_every_operation_with_its_constants() -> None:
    chain = tuple(Step(op, op.constants[-1] if op.constants else ()) for op in OPS)
    assert parse(chain_problem(chain).source) == chain


def test_parse_refuses_what_is_no_chain() -> None:
    assert parse("    def forward(self, x):\n        x = x @ x\n        return x\n") is None
    assert parse("    def forward(self, x):\n        return x\n") is None
    assert parse("    def forward(self, a, b):\n        return a\n") is None


def test_a_problem_is_a_working_reference_at_both_sizes() -> None:
    problem = chain_problem(steps("bias", "relu", "scale"), shape=(32, 64), small=(4, 8))
    assert columns(problem.source) == 64
    for small, shape in ((True, (4, 8)), (False, (32, 64))):
        reference = load_reference(problem.source, small=small)
        model, (x,) = reference.model(0), reference.inputs(1)
        expected = torch.relu(x + model.bias) * 0.1
        assert x.shape == shape
        torch.testing.assert_close(model(x), expected)


def test_columns_needs_the_constant() -> None:
    with pytest.raises(ValueError, match="assigns no `COLS"):
        columns("ROWS = 3\n")


@pytest.mark.parametrize(
    ("chain", "reason"),
    [
        ((Step(BY_NAME["square"]), Step(BY_NAME["shift"], ("3.0",)), Step(BY_NAME["clamp"], ("0.0", "1.0"))), "nearly constant"),
        (steps("abs", "relu"), "without `x = F.relu(x)`"),
        (steps("sigmoid", "abs"), "without `x = x.abs()`"),
        ((Step(BY_NAME["drop"], ("0.5",)), *steps("sigmoid", "relu")), "without `x = F.relu(x)`"),
        ((Step(BY_NAME["drop"], ("1.0",)), *steps("relu", "tanh")), "most of the output is 0"),
    ],
)
def test_degenerate_chains_are_named(chain: tuple[Step, ...], reason: str) -> None:
    assert reason in (degenerate(chain) or "")


def test_an_ordinary_chain_is_not_degenerate() -> None:
    assert degenerate(steps("bias", "gelu", "scale")) is None


def test_generation_depends_on_the_seed_alone_and_keeps_its_promises() -> None:
    problems = generate(60, seed=7, split="validation")
    assert problems == generate(60, seed=7, split="validation")
    assert problems != generate(60, seed=8, split="validation")
    assert len({problem.name for problem in problems}) == 60
    chains = [parse(problem.source) or () for problem in problems]
    assert all(2 <= len(chain) <= 6 and degenerate(chain) is None for chain in chains)
    assert {step.op.name for chain in chains for step in chain} == set(BY_NAME)


def test_chains_of_another_split_are_left_out_whatever_their_constants() -> None:
    held_out = frozenset(names_of(parse(problem.source) or ()) for problem in generate(40, seed=1))
    assert len(held_out) > 20
    found = {names_of(parse(problem.source) or ()) for problem in generate(40, seed=1, without=held_out)}
    assert not found & held_out
