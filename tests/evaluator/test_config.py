"""Settings of the evaluator: their defaults are part of stored results, and a wrong one is one clear line."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace

import pytest

from rlkernel.evaluator import cache as caches
from rlkernel.evaluator.config import EvaluatorConfig, Limits
from rlkernel.types import Precision, Problem


def test_an_unknown_profile_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"^unknown device profile 'h300': use one of h200, a100, h100, l40s, rtx4090, b200$"):
        EvaluatorConfig(profile="h300")
    with pytest.raises(ValueError, match="unknown precision 'exact': use one of pytorch, strict, tf32"):
        EvaluatorConfig(precision="exact")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"timing_width is 0.0: use a number above 0, such as 0.0125"):
        EvaluatorConfig(timing_width=0.0)


def test_defaults() -> None:
    assert EvaluatorConfig() == EvaluatorConfig("h200", Precision.PYTORCH, False, None, Limits())
    # 4 GiB, and what the card has
    assert (Limits().memory_bytes, Limits().gpu_memory_bytes) == (4_294_967_296, 0)


@pytest.mark.parametrize("name", [field.name for field in fields(Limits)])
def test_every_limit_is_part_of_a_results_key(name: str) -> None:
    problem = Problem("mine/p", 1, "train", "x = 1")
    other = EvaluatorConfig(limits=replace(Limits(), **{name: getattr(Limits(), name) + 1}))
    keys = {caches.key(problem, "code", "cpu", repr(config)) for config in (EvaluatorConfig(), other)}
    assert len(keys) == 2


def test_a_configuration_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        EvaluatorConfig().precision = Precision.TF32  # type: ignore[misc]
