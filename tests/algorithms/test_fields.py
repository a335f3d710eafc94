"""Every registered method refuses, in one line, what its fields cannot be."""

from __future__ import annotations

import math
from dataclasses import Field, fields
from typing import Any

import pytest

from algorithms import CONTEXTS, TABLES
from rlkernel.errors import UsageError

CLASSES = tuple(cls for table in (*TABLES.values(), CONTEXTS) for cls in table.values())
NUMBERS = ("int", "float", "int | None", "float | None")


def of(kinds: tuple[str, ...] | None) -> list[Any]:
    """The fields of all methods that are annotated so; None: those whose default is a word."""
    found: dict[str, tuple[type, Field[Any]]] = {}
    for cls in CLASSES:
        for field in fields(cls):
            if field.type in kinds if kinds is not None else isinstance(field.default, str):
                found[f"{cls.__name__}.{field.name}"] = (cls, field)
    return [pytest.param(*case, id=name) for name, case in found.items()]


@pytest.mark.parametrize("value", [math.nan, -math.inf, "x", True])
@pytest.mark.parametrize(("cls", "field"), of(NUMBERS))
def test_a_number_is_a_number(cls: type, field: Field[Any], value: Any) -> None:
    with pytest.raises(UsageError) as refused:
        cls(**{field.name: value})
    assert str(refused.value).startswith(f"{cls.__name__}.{field.name} is {value!r}: it must be a ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("cls", "field"), of(None))
def test_a_word_is_one_of_its_words(cls: type, field: Field[Any]) -> None:
    with pytest.raises(UsageError) as refused:
        cls(**{field.name: "nonsense"})
    assert str(refused.value).startswith(f"{cls.__name__}.{field.name} is 'nonsense': use one of ")
    assert str(field.default) in str(refused.value)


def test_every_method_with_a_number_or_a_word_was_asked() -> None:
    asked = {str(case.id).split(".")[0] for case in (*of(NUMBERS), *of(None))}
    assert {"GRPO", "ReinforcePP", "HRD", "PR", "SpeedReward", "FlatGroups", "MIS", "Veto", "LastTurns"} <= asked


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("grpo", {"eps": -0.5}, "GRPO.eps is -0.5: it must be a number that is not negative"),
        ("grpo", {"ddof": 7}, "GRPO.ddof is 7: it must be a whole number that is not negative and at most 1"),
        ("grpo", {"ddof": -3}, "GRPO.ddof is -3: it must be a whole number that is not negative and at most 1"),
        ("hrd", {"alpha": -3}, "HRD.alpha is -3: it must be a number that is not negative"),
        ("pr", {"weight": -1}, "PR.weight is -1: it must be a number that is not negative"),
        ("speed", {"cap": -1}, "SpeedReward.cap is -1: it must be a number that is not negative"),
        ("flat_groups", {"std": -1}, "FlatGroups.std is -1: it must be a number that is not negative"),
        ("mis", {"low": 0, "high": 0}, "MIS.high is 0: it must be a number above 0"),
        ("tis", {"low": math.inf, "high": math.inf}, "TIS.low is inf: it must be a number that is not negative"),
        ("mrs", {"low": 2, "high": 1}, "MRS.low is 2 and MRS.high 1: the low one must not be above the high one"),
        ("prs", {"decimals": 1.5}, "PRS.decimals is 1.5: it must be a whole number that is not negative or None for no rounding"),
        ("last", {"count": 0}, "LastTurns.count is 0: it must be a whole number of at least 1"),
        ("window", {"count": -2}, "BestWindow.count is -2: it must be a whole number of at least 1"),
    ],
)
def test_bounds(name: str, changes: dict[str, Any], said: str) -> None:
    classes = {key: cls for table in (*TABLES.values(), CONTEXTS) for key, cls in table.items()}
    with pytest.raises(UsageError) as refused:
        classes[name](**changes)
    assert str(refused.value) == said


def test_what_means_no_bound_is_taken() -> None:
    classes = {key: cls for table in TABLES.values() for key, cls in table.items()}
    assert classes["tis"](high=math.inf).high == classes["speed"](cap=math.inf).cap == math.inf
    assert classes["mrs"](veto=None).veto is None
