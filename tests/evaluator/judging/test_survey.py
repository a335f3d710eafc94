"""What is found of a reference before anybody tries it."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.judging.survey import survey
from rlkernel.evaluator.messages.oracle import About
from rlkernel.evaluator.messages.survey import Survey
from rlkernel.types import Precision

SOURCE = """
import torch
N = {size}
class Model(torch.nn.Module):
    def forward(self, x):
        return {work}
def get_inputs():
    return [torch.randn(N, 64)]
def get_init_inputs():
    return []
"""


def found(work: str, size: int = 64) -> Survey:
    return survey(About("p", SOURCE.format(work=work, size=size), "h200", Precision.PYTORCH))


def test_a_sound_reference() -> None:
    facts = found("torch.relu(x) + 1")
    assert (facts.broken, facts.checked, facts.random, facts.degenerate) == ("", True, False, "")
    assert sorted(op.op for op in facts.ops) == ["aten.add", "aten.relu"]
    assert facts.reference_us == pytest.approx(5.0, abs=0.1)  # two launches of 2.5 us


def test_the_form_of_the_work_is_free_of_sizes_constants_and_spelling() -> None:
    form = found("torch.relu(x) + 1").form
    assert found("torch.nn.functional.relu(x, inplace=True) + 2.5", size=32).form == form
    assert found("torch.relu(x) * 1").form != form
    assert found("torch.relu(x + 1)").form != form


def test_a_reference_that_draws_numbers_and_one_that_is_constant() -> None:
    assert found("x + torch.rand_like(x)").random
    assert "zeros would pass" in found("(x * 0).sum(-1)").degenerate


def test_a_large_reference_is_looked_at_in_a_smaller_size() -> None:
    facts = found("torch.relu(x) * 0", size=1 << 22)  # 1 GiB
    assert facts.reference_us > 250 and facts.checked and "zeros would pass" in facts.degenerate


def test_a_reference_that_fails_is_told_in_one_line() -> None:
    assert found("x.view(7, -1)").broken.startswith("p: tracing forward raised RuntimeError on line 6: shape '[7, -1]'")
