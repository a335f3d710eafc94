"""Which constant parameters a wrong candidate has ignored, in words; and what a reference says of constants that are meant."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.judging.references.blame import ignored
from rlkernel.evaluator.judging.references.reference_calls import constants, perturb, state_of
from rlkernel.evaluator.pool import Pool
from rlkernel.reference import load_reference
from rlkernel.types import Problem, Status
from tests.red_team import cases


def build() -> nn.Module:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6), nn.LayerNorm(6))
    perturb(model, 5, constants(model))
    return model


def inputs() -> list[torch.Tensor]:
    return [torch.arange(24.0).reshape(4, 6).sin()]


CONSTANTS = {f"{layer}.{name}": torch.full((6,), value) for layer in (1, 2) for name, value in (("weight", 1.0), ("bias", 0.0))}


@pytest.mark.parametrize(
    ("put_back", "words"),
    [
        (["2.bias"], "; 2.bias is ignored"),
        (["1.weight"], "; 1.weight is ignored"),
        (["2.weight", "2.bias"], "; 2.weight and 2.bias are ignored"),
        ([], ""),
    ],
)
def test_what_was_ignored_is_named(put_back: list[str], words: str) -> None:
    """A candidate that ignores a parameter is the reference with that parameter as it was drawn."""
    model = build()
    with torch.no_grad():
        for name in put_back:
            state_of(model)[name].copy_(CONSTANTS[name])
        found = [model(*inputs())]
    said = ignored(build, CONSTANTS, inputs, 0, found if put_back else [found[0] + 1.0])
    assert sorted(said.replace(";", "").split()) == sorted(words.replace(";", "").split())


class Marked(nn.Module):
    """Parameters and a buffer that hold two values."""

    def __init__(self) -> None:
        super().__init__()
        self.mixing, self.mask = nn.Parameter(torch.eye(4)), nn.Parameter(torch.eye(4), requires_grad=False)
        self.hidden = nn.Parameter(torch.tensor([0.0, 0.0, -1e9]))
        self.register_buffer("triangle", torch.ones(4, 4).tril())


def test_a_trainable_parameter_of_two_values_is_a_constant_and_a_mask_is_not() -> None:
    model = Marked()
    assert list(constants(model)) == ["mixing"]
    perturb(model, 3, constants(model))
    apart = (model.mixing.detach() - torch.eye(4)).abs()
    assert float(apart.min()) > 0.0 and float(apart.max()) <= 0.5
    assert torch.equal(model.mask.detach(), torch.eye(4))


def test_fixed_names_are_patterns() -> None:
    model = nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6), nn.BatchNorm1d(6))
    assert set(constants(model, ())) == {"1.weight", "1.bias", "2.weight", "2.bias", "2.running_mean", "2.running_var"}
    assert set(constants(model, ("1.*", "*.running_mean"))) == {"2.weight", "2.bias", "2.running_var"}
    assert constants(model, ("*",)) == {}
    perturb(model, 1, constants(model, ("*",)))
    assert bool((state_of(model)["1.weight"] == 1).all())


SOURCE = "from torch import nn\nModel = nn.Module\nget_inputs = get_init_inputs = lambda: []\n"


@pytest.mark.parametrize(
    ("line", "fixed"), [("", ()), ('FIXED = ("norm.weight",)\n', ("norm.weight",)), ('FIXED = ["*"]\n', ("*",))]
)
def test_a_reference_names_what_is_fixed(line: str, fixed: tuple[str, ...]) -> None:
    assert load_reference(SOURCE + line, small=False).fixed == fixed


@pytest.mark.parametrize("line", ['FIXED = "*"', "FIXED = (1,)", "FIXED = True"])
def test_a_fixed_that_is_no_tuple_of_names_is_refused(line: str) -> None:
    with pytest.raises(BrokenReference, match=r"^mine: FIXED is not a tuple of names of parameters"):
        load_reference(SOURCE + line, small=False, name="mine")


@pytest.mark.anyio
async def test_a_verdict_names_the_ignored_parameter_and_fixed_forgives_it(pool: Pool) -> None:
    case = cases.load("hostile")["layer_norm_no_bias"]
    wrong = await pool.evaluate(case.problem, case.code)
    assert wrong.status is Status.INCORRECT
    assert "parameters at other values" in wrong.detail
    assert wrong.detail.endswith(" is ignored"), wrong.detail
    name = wrong.detail.removesuffix(" is ignored").split("; ")[-1]
    source = f"{case.problem.source}\nFIXED = ({name!r},)\n"
    right = await pool.evaluate(Problem("fixed", 1, "train", source), case.code)
    assert right.status is Status.CORRECT, right.detail
