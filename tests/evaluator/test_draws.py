"""What an evaluation draws from its key."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.cpu.machine import Machine
from rlkernel.evaluator.draws import draws, key_of
from rlkernel.evaluator.judging.construction import Round
from rlkernel.evaluator.judging.references.reference_calls import tensors_of
from rlkernel.reference import load_reference
from rlkernel.types import Precision
from tests.evaluator.judging.test_drawing import drawn_rounds

SCALED = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(x) * self.weight

def get_inputs():
    return [torch.rand(16, 8)]

def get_init_inputs():
    return []
"""
PARTS = ("problem", "code", {"traces": [1]})


def numbers(rounds: list[Round]) -> list[torch.Tensor]:
    """Everything that was drawn for the rounds of a candidate."""
    return [t for one in rounds for t in (*one.state.values(), *tensors_of(one.inputs), *one.expected.exact)]


def test_a_key_is_made_of_the_seed_and_of_every_part() -> None:
    key = key_of(0, *PARTS)
    others = [key_of(1, *PARTS), *(key_of(0, *PARTS[:i], "other", *PARTS[i + 1 :]) for i in range(3))]
    assert key == key_of(0, *PARTS) and len({key, *others}) == 5
    assert len(key) == len(key_of(None, *PARTS)) == 64


def test_without_a_seed_every_key_is_another_one() -> None:
    assert len({key_of(None, *PARTS) for _ in range(20)}) == 20


def test_equal_keys_give_equal_rounds_and_every_other_key_gives_others() -> None:
    reference = load_reference(SCALED, small=True)
    key = key_of(0, *PARTS)
    first, again, other = (
        numbers(drawn_rounds(reference, Precision.PYTORCH, name, other=True)) for name in (key, key, key_of(1, *PARTS))
    )
    # Five rounds, the last out of half precision's range, each with an input and an output, and three parameters but for the
    # second, which calls the module of the first again.
    assert len(first) == len(again) == len(other) == 5 * 5 - 3
    assert all(torch.equal(one, two) for one, two in zip(first, again, strict=True))
    # The parameter of ones is as it is written for the first module and for the last.
    assert [torch.equal(one, two) for one, two in zip(first, other, strict=True)].count(True) == 2


@pytest.mark.parametrize("use", ["rounds", "programs"])
def test_the_uses_of_a_key_are_drawn_apart(use: str) -> None:
    assert draws("key", use).getrandbits(64) == draws("key", use).getrandbits(64) != draws("key", "other").getrandbits(64)


def test_a_machine_takes_undefined_values_orders_and_programs_from_its_key() -> None:
    def drawn(key: str | None) -> tuple[bytes, int, float]:
        machine = Machine()
        if key is not None:
            machine.draw_from(key)
        return machine._undefined((4,), torch.empty(0).numpy().dtype).tobytes(), machine.order, machine.programs.random()

    assert drawn("a") == drawn("a")
    for one, two in ((drawn("a"), drawn("b")), (drawn(None), drawn(None))):
        assert all(x != y for x, y in zip(one, two, strict=True))


def test_programs_take_turns_anew_in_each_round_of_a_key() -> None:
    def turns() -> list[int]:
        machine = Machine()
        machine.draw_from("a")
        found = [machine.turns]
        for number in range(4):
            machine.begin_round(number)
            found.append(machine.turns)
        return found

    assert turns() == turns()
    assert turns()[0] == turns()[1]
    assert len(set(turns())) == 4
