"""Inputs that hardly matter: which they are, and the sizes at which they do."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.inputs.little import NOTE, resized, resized_of
from rlkernel.evaluator.messages.judgement import Resized
from rlkernel.reference import Reference, load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, w, g):
        return {answer}

def get_inputs():
    return [torch.randn(64, 32){dtype}, torch.randn(64, 32){dtype}]

def get_init_inputs():
    return []
"""


def reference(answer: str, dtype: str = "") -> Reference:
    return load_reference(SOURCE.format(answer=answer, dtype=dtype), small=False)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("w + g", []),
        ("w - 0.1 * g", []),
        ("w - 1e-5 * g", [(1, 2.0**15)]),
        ("w.lerp_(g, 1e-5)", [(1, 2.0**15)]),
        ("1e-5 * w + g", [(0, 2.0**15)]),
        ("(w - 1e-5 * g, g)", [(1, 2.0**15)]),  # it matters in one of two results
        ("w - 1e-5 * g / (g.abs() + 1e-8)", [(0, 2.0**-15)]),  # as large for any gradient
        ("w + 0 * g", []),  # it is not read at all
        ("w.softmax(1) + 1e-20 * g", []),  # nobody could tell
        ("(w - 1e-5 * g).argmax(1)", []),  # nothing is known of indices
    ],
)
def test_what_makes_an_input_matter(answer: str, found: list[tuple[int, float]]) -> None:
    assert [(one.place, one.factor) for one in resized_of(reference(answer))] == found


def test_what_half_precision_hides_is_made_larger_by_what_it_takes() -> None:
    (found,) = resized_of(reference("w - 1e-5 * g", ".bfloat16()"))
    assert found == Resized(1, 2.0**15)
    assert resized_of(reference("w - 1e-8 * g", ".half()")) == (), "half precision has no such numbers"


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("w - 1e-5 * g / (1 - 0.9 ** (step + 1))", [(1, 2.0**12, (2,))]),
        ("w - 1e-5 * g + 0 * step", [(1, 2.0**15, ())]),  # it is not read
        ("w - 1e-5 * g / (step == 0)", [(1, 2.0**15, ())]),  # not borne
        ("w + g / (1 - 0.9 ** (step + 1))", []),
        ("w - 1e-5 * step * g.sign()", [(0, 2.0**-17, (2,))]),  # the number alone hardly matters
    ],
)
def test_single_numbers_are_others_beside_it(answer: str, found: list[tuple[int, float, tuple[int, ...]]]) -> None:
    source = SOURCE.format(answer=answer, dtype="").replace("w, g)", "w, g, step)").replace("32)]\n", "32), torch.zeros(1)]\n")
    assert [(one.place, one.factor, one.numbers) for one in resized_of(load_reference(source, small=False))] == found
    one = resized([torch.ones(2), torch.ones(2), torch.zeros(1)], Resized(1, 4.0, (2,)))
    assert [tensor.tolist() for tensor in one] == [[1.0, 1.0], [4.0, 4.0], [0.5]]


def test_an_input_alone_is_not_looked_at() -> None:
    alone = SOURCE.format(answer="w * 1e-5 + 1", dtype="").replace(", torch.randn(64, 32)", "").replace("w, g", "w")
    assert resized_of(load_reference(alone, small=False)) == ()


def test_an_input_of_another_size_is_in_a_round_of_its_own() -> None:
    small = reference("w - 1e-5 * g")
    rounds = [r for some in draw_rounds(small, Precision.PYTORCH, "key", other=False, plants=resized_of(small)) for r in some]
    (noted,) = (one for one in rounds if NOTE in one.expected.note)
    assert float(noted.inputs[1].abs().mean()) == pytest.approx(2.0**15 * 0.8, rel=0.1) and not noted.expected.ordinary
    given = noted.inputs[0] - 1e-5 * noted.inputs[1]
    assert torch.equal(noted.expected.reference[0], given)
