"""Weights reach what `__init__` makes of them, under the reference's name, another one, or none."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rlkernel.evaluator.judging.references.reference_calls import hand_over
from rlkernel.evaluator.program import folding
from rlkernel.evaluator.program.replay import Replay
from rlkernel.seeds import seed_generators
from tests.evaluator.trace.test_candidate import program

SEED = 5


@pytest.mark.parametrize(
    ("init", "name"),
    [
        ("self.weight = nn.Parameter(torch.randn(4, 3)); self.register_buffer('t', self.weight.detach().t().contiguous())", "t"),
        ("self.mine = nn.Parameter(torch.randn(4, 3)); self.register_buffer('t', self.mine.detach().t().contiguous())", "t"),
        ("self.register_buffer('t', nn.Parameter(torch.randn(4, 3)).detach().t().contiguous())", "t"),
        ("self.weight = nn.Parameter(torch.randn(4, 3).t().contiguous())", "weight"),
    ],
)
def test_what_is_folded_is_folded_from_the_given_weight(init: str, name: str) -> None:
    seed_generators(SEED)
    given = torch.randn(4, 3) * 2.0**26
    state = Replay(program("return x", init=init), torch.device("cpu"), lambda *call: None).init([], SEED, {"weight": given})
    assert torch.equal(state[name], given.t())


@pytest.mark.parametrize("factor", [1.0, 0.02])
@pytest.mark.parametrize("shape", [(4, 3), (12,)])
def test_a_weight_is_known_by_its_numbers_where_some_of_them_are_halved(shape: tuple[int, ...], factor: float) -> None:
    seed_generators(SEED)
    given = torch.randn(shape) * factor
    given.flatten()[::4] *= folding.HALVED
    init = f"self.register_buffer('t', torch.cat([nn.Parameter(torch.randn({shape})).detach()] * 2))"
    state = Replay(program("return x", init=init), torch.device("cpu"), lambda *call: None).init([], SEED, {"weight": given})
    assert torch.equal(state["t"], torch.cat([given, given]))


def test_a_weight_that_init_expands_is_given_to_what_is_expanded() -> None:
    """The elements of an expanded tensor are one in memory, which no copy of a whole weight can be written to."""
    seed_generators(SEED)
    given = torch.randn(1, 3).expand(4, 3).contiguous() * 2.0
    init = "self.register_buffer('weight', torch.randn(1, 3).expand(4, 3).contiguous())"
    state = Replay(program("return x", init=init), torch.device("cpu"), lambda *call: None).init([], SEED, {"weight": given})
    assert torch.equal(state["weight"], given)


@pytest.mark.parametrize("drawn", ["torch.ones(4, 3)", "torch.randn(3, 4).t()", "torch.zeros(4, 3)"])
def test_other_numbers_stay(drawn: str) -> None:
    """Constants say nothing of where they come from, and numbers of another order are others."""
    one = program("return x", init=f"self.register_buffer('t', {drawn}.t().contiguous())")
    seed_generators(SEED)
    given = torch.full((4, 3), 7.0) if "ones" in drawn else torch.randn(4, 3)
    kept = Replay(one, torch.device("cpu"), lambda *call: None).init([], SEED)["t"]
    assert torch.equal(Replay(one, torch.device("cpu"), lambda *call: None).init([], SEED, {"weight": given})["t"], kept)


@pytest.mark.parametrize(
    ("init", "left"),
    [
        ("self.register_buffer('t', torch.randn(4, 4).t().contiguous())", False),
        ("self.mine = nn.Parameter(torch.randn(4, 4) * 0.02)", True),
        ("self.mine = nn.Parameter(torch.randn(4, 4))", True),
        ("self.mine = nn.Parameter(torch.zeros(4, 4))", True),
    ],
)
def test_a_weight_that_went_into_the_state_is_not_given_again(init: str, left: bool) -> None:
    """A square weight that is transposed has the shape of a weight, and is none. One that is scaled is the weight itself."""
    replay = Replay(program("return x", init=init), torch.device("cpu"), lambda *call: None)
    seed_generators(SEED)
    given = torch.randn(4, 4) * 2.0
    replay.init([], SEED, {"weight": given})
    assert replay.given.keys() == ({"weight"} if left else set())


@pytest.mark.parametrize("factor", [1.0, 2.0**26, 2.0**-26])
@pytest.mark.parametrize(
    ("init", "name", "expected"),
    [
        ("self.weight = nn.Parameter(torch.randn(4, 3)); self.weight.data.mul_(0.5)", "weight", lambda w: w * 0.5),
        ("self.weight = nn.Parameter(torch.randn(4, 3)); self.weight.data.div_(2)", "weight", lambda w: w / 2),
        ("self.weight = nn.Parameter(torch.randn(4, 3)); self.weight.data.sub_(3.0)", "weight", lambda w: w - 3.0),
        ("self.mine = nn.Parameter(torch.randn(4, 3)); self.mine.data /= 4", "mine", lambda w: w / 4),
        ("w = nn.Parameter(torch.randn(4, 3)); self.weight = nn.Parameter(w.detach() * 8)", "weight", lambda w: w * 8),
        ("w = self.weight = nn.Parameter(torch.randn(4, 3)); w.data.copy_(w.data * 3)", "weight", lambda w: w * 3),
        ("w = self.weight = nn.Parameter(torch.randn(4, 3)); w.data.mul_(4).div_(8)", "weight", lambda w: w / 2),
        ("w = torch.randn(4, 3); w += w; self.t = nn.Parameter(w.t().contiguous())", "t", lambda w: (2 * w).t()),
        (
            "w = self.weight = nn.Parameter(torch.randn(4, 3)); w.data.mul_(8); self.t = (w.data.t() + 1).contiguous()",
            "weight",
            lambda w: w * 8,
        ),
        ("w = torch.randn(4, 3) / 2; self.t = nn.Parameter(w.t().contiguous())", "t", lambda w: (w / 2).t()),
        ("self.mine = nn.Parameter(torch.randn(4, 3) / 2)", "mine", lambda w: w / 2),
    ],
)
def test_a_weight_that_is_changed_once_it_is_drawn_stays_changed(init: str, name: str, expected: Any, factor: float) -> None:
    """A plain run has a factor in its weights, because both sides draw them from one seed."""
    assert torch.equal(_constructed(init, factor)[name], expected(_drawn() * factor))


@pytest.mark.parametrize(
    "init",
    [
        "self.weight = nn.Parameter(torch.randn(4, 3) * 0.02)",
        "self.weight = nn.Parameter(torch.randn(4, 3)); self.weight.data.mul_(0.02)",
        "self.weight = nn.Parameter(torch.empty(4, 3)); nn.init.trunc_normal_(self.weight)",
        "self.weight = nn.Parameter(torch.zeros(4, 3)); self.weight.data.add_(1)",
        "self.weight = nn.Parameter(torch.rand(4, 3)); self.weight.data.mul_(2).sub_(1)",
        "self.weight = nn.Parameter(-torch.rand(4, 3))",
        "self.weight = nn.Parameter(torch.rand(4, 3)); self.weight.data.neg_()",
        "self.mine = nn.Parameter(torch.randn(4, 3) * -1.0)",
    ],
)
@pytest.mark.parametrize("factor", [1.0, 2.0**26])
def test_a_weight_that_is_drawn_in_several_steps_is_given_as_the_reference_has_it(init: str, factor: float) -> None:
    """The reference draws in the same steps, so that its numbers are those of the last one."""
    seed_generators(SEED)
    ((name, plain),) = Replay(program("return x", init=init), torch.device("cpu"), lambda *call: None).init([], SEED).items()
    given = plain * factor
    assert torch.equal(_constructed(init, 1.0, given)[name], given)


def _drawn() -> torch.Tensor:
    seed_generators(SEED)
    return torch.randn(4, 3)


def _constructed(init: str, factor: float, given: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
    """The state as a round has it: what is left to be given, is."""
    given = _drawn() * factor if given is None else given
    replay = Replay(program("return x", init=init), torch.device("cpu"), lambda *call: None)
    state = replay.init([], SEED, {"weight": given})
    hand_over({name: tensor.data for name, tensor in state.items()}, replay.given)
    return state


def test_a_step_looks_at_the_tensors_that_it_reads_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many steps look at twice as many tensors, and not at four times as many."""
    looked = 0
    storage = torch.Tensor.untyped_storage

    def counted(tensor: torch.Tensor) -> Any:
        nonlocal looked
        looked += 1
        return storage(tensor)

    def looks(steps: int) -> int:
        nonlocal looked
        init = f"t = torch.zeros(1)\nfor i in range({steps}): t = t + i\nself.register_buffer('t', t)"
        replay = Replay(program("return x", init=init.replace("\n", "\n        ")), torch.device("cpu"), lambda *call: None)
        with monkeypatch.context() as patch:
            patch.setattr(torch.Tensor, "untyped_storage", counted)
            looked = 0
            replay.init([], SEED, {"weight": torch.randn(4, 3)})
        return looked

    assert 0 < looks(80) < 3 * looks(40)


@pytest.mark.parametrize("factor", [1.0, -0.25, 2.0**26])
def test_a_weight_with_outliers_is_known_by_the_numbers_that_were_drawn(factor: float) -> None:
    """A round without a GPU makes a few elements 64 times as large: a transposed copy must get them, too."""
    torch.manual_seed(0)
    drawn = torch.randn(64, 64).bfloat16()
    larger = torch.rand(64, 64) < 1 / 64
    larger[0, 0] = True  # the element that the others are held against
    weight = factor * torch.where(larger, 64 * drawn, drawn)
    assert folding._scaled(drawn, weight) and folding._proportional(drawn, weight)
    assert folding._drawn(drawn, weight) == (factor != -0.25)
    assert not folding._scaled(torch.randn(64, 64).bfloat16(), weight)
    assert not folding._scaled(drawn, weight.where(~larger, 63 * drawn)), "not so many times as large"


def test_a_vector_has_no_outliers() -> None:
    drawn = torch.linspace(1.0, 2.0, 64)
    weight = torch.where(torch.arange(64) % 16 == 3, 64.0 * drawn, drawn)
    assert not folding._scaled(drawn, weight) and folding._scaled(drawn.view(8, 8), weight.view(8, 8))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_weight_is_known_by_what_is_rounded_to_it_later(dtype: str) -> None:
    """Two weights are drawn in float32, packed, and rounded once; the reference has rounded each of them before."""
    init = f"self.register_buffer('t', torch.cat([torch.randn(4, 3), torch.randn(4, 3)]).to(torch.{dtype}))"
    one = program("return x", init=init)
    seed_generators(SEED)
    first, second = (torch.randn(4, 3).to(getattr(torch, dtype)) for _ in range(2))
    first[1, 2] *= 64
    state = Replay(one, torch.device("cpu"), lambda *call: None).init([], SEED, {"a": first, "b": second})
    assert torch.equal(state["t"], torch.cat([first, second]))


def test_what_is_made_of_a_rounded_weight_that_the_state_holds_stays() -> None:
    """That weight is known where it is rounded, not by finer numbers before: zeros above its diagonal are `__init__`'s own."""
    init = "self.weight = nn.Parameter(torch.randn(4, 4).bfloat16()); self.weight.detach().mul_(torch.ones(4, 4).tril())"
    seed_generators(SEED)
    given = torch.randn(4, 4).bfloat16()
    replay = Replay(program("return x", init=init), torch.device("cpu"), lambda *call: None)
    state = replay.init([], SEED, {"weight": given})
    hand_over(state, replay.given)
    assert torch.equal(state["weight"], given.tril())
