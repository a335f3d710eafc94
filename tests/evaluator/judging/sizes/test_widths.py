"""Which references add up whole numbers that need more bits at full shape than where results are compared."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.evaluator.judging.sizes.lengthening import lengthened
from rlkernel.types import Precision, Problem

SOURCE = """
import torch
import torch.nn as nn

R, C, V = 64, 16384, 40000
SMALL = {{"R": 4, "C": 64, "V": 100}}

class Model(nn.Module):
    def forward(self, a, words):
        return {answer}

def get_inputs():
    return [torch.randint(0, 700, (R, C), dtype=torch.int32), torch.randint(0, V, (R, C))]

def get_init_inputs():
    return []
"""


def problem(answer: str) -> Problem:
    return Problem("own/sums", 1, "train", SOURCE.format(answer=answer))


def hidden(source: str) -> bool:
    return prepare(source, "own/sums", H200, Precision.PYTORCH).widths


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("(a * a).sum(1)", True),
        ("(2 * a).cumsum(1)", True),  # 12 millions, and up to 24 where more than its terms grows
        ("a[:, :32].sum(1)", False),
        ("(a > 500).sum(1)", False),
        ("words.sum(1)", True),  # of a vocabulary that was made smaller
        ("(words > 50).sum(1)", False),  # which counts
        ("a.float().sum(1)", False),
        ("(a.double() * a).sum(1)", False),
        ("torch.bincount(words.flatten(), minlength=V)", False),
        ("(a.long() * 1000000).sum(1)", False),  # more than 2^31 at both
    ],
)
def test_sums_that_leave_a_width_at_full_shape_alone(answer: str, found: bool) -> None:
    assert hidden(problem(answer).source) is found


def test_there_are_longer_sizes_that_show_it() -> None:
    looks = lengthened(given := problem("(a * a).sum(1)"), H200)
    shown = [look.sizes["C"] for look in looks if not hidden(look.source)]
    assert hidden(given.source) and shown and min(shown) == 16384
