"""Labels that never name a large number: which inputs have them, and what is put in their place."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.inputs.labels import LIKELY, labelled, labels_of
from rlkernel.evaluator.messages.judgement import Labelled
from rlkernel.reference import Reference, load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def forward(self, x, y, few):
        return {answer}

def get_inputs():
    return [torch.randn(4, 64, 100), torch.randint(0, 100, (4, 64)), torch.randint(0, 4, (64, 100))]

def get_init_inputs():
    return []
"""


def reference(answer: str) -> Reference:
    return load_reference(SOURCE.format(answer=answer), small=False)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("x.gather(2, y[..., None])", [(0, 1, 2)]),
        ("x.softmax(-1).gather(-1, y[..., None]).log()", [(0, 1, 2)]),
        ("F.cross_entropy(x.view(-1, 100), y.view(-1))", [(0, 1, 2)]),  # tokens side by side
        ("F.cross_entropy(x.transpose(1, 2), y)", []),  # whose rows lie elsewhere
        ("x.gather(0, few[None])", []),  # one of four is the largest in every fourth row
        ("x.gather(2, y[..., None].flip(0))", []),  # no input's own numbers
        ("(x @ x.mT).gather(2, y.clamp(max=63)[..., None])", []),
        ("x[0][y % 64]", []),  # which takes whole rows
        ("x + y[..., None]", []),
    ],
)
def test_which_inputs_have_labels_that_name_no_large_number(answer: str, found: list[tuple[int, int, int]]) -> None:
    assert [(one.place, one.labels, one.axis) for one in labels_of(reference(answer))] == found


def test_about_half_of_the_rows_get_a_label_that_is_as_likely_as_all_others() -> None:
    x, y = torch.randn(200, 50), torch.randint(0, 50, (200,))
    y[:20] = -100  # which is ignored
    made, _ = labelled([x, y], Labelled(0, 1, 1), 3)
    changed = (made != x).any(1)
    assert 60 < int(changed.sum()) < 120 and not changed[:20].any()
    assert int((made != x).sum()) == int(changed.sum()), "one number in each"
    named = made.softmax(1).gather(1, y.clamp(min=0)[:, None])[:, 0]
    assert bool((named[changed] > 0.45).all()) and bool((named[changed] < 0.56).all())
    assert torch.equal(made, labelled([x, y], Labelled(0, 1, 1), 3)[0])


def test_there_is_a_round_of_it() -> None:
    plants = labels_of(given := reference("F.cross_entropy(x.view(-1, 100), y.view(-1))"))
    rounds = [one for made in draw_rounds(given, Precision.PYTORCH, "key", other=False, plants=plants) for one in made]
    assert [one.expected.note for one in rounds].count(f" ({LIKELY})") == 1
