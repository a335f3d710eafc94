"""A class in place of a method, wherever a method can be, is one line that names the field and the fix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import pytest

from algorithms import TABLES
from algorithms.hrd import HRD
from algorithms.pr import PR
from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from examples import rl_loop
from rlkernel.config import METHODS, SETTINGS, Run
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.errors import UsageError
from rlkernel.interfaces import Correction
from rlkernel.types import Problem

BASE = Run(
    "base", (Problem("level1/relu", 1, "train", ""),), KernelEnvironment(), SpeedReward(), TRLOO(), UniformCredit()
)  # fmt: skip


def field_of(kind: str) -> str:
    """The field of a Run that takes the methods of one of the tables."""
    return kind if kind in METHODS else f"{kind}s"


def nested(place: str, owner: Any) -> Iterator[tuple[str, Any]]:
    """Every method inside of a method, by its place, with the outer method that has the inner one's class there."""
    for field in fields(owner):
        value = getattr(owner, field.name)
        if not is_dataclass(value) or isinstance(value, type):
            continue
        yield f"{place}.{field.name}", replace(owner, **{field.name: type(value)})
        for inside, broken in nested(f"{place}.{field.name}", value):
            yield inside, replace(owner, **{field.name: broken})


def given(name: str, value: Any) -> Any:
    return (value,) if name == "corrections" else value


REGISTERED = [(field_of(kind), cls) for kind, table in TABLES.items() for cls in table.values()]
INSIDE = [(name, place, broken) for name, cls in REGISTERED for place, broken in nested(f"Run.{name}", cls())]


@pytest.mark.parametrize(("name", "cls"), REGISTERED)
def test_the_class_of_a_registered_method_is_refused_and_its_instance_is_not(name: str, cls: type) -> None:
    assert getattr(replace(BASE, **{name: given(name, cls())}), name) == given(name, cls())
    with pytest.raises(UsageError) as refused:
        replace(BASE, **{name: given(name, cls)})
    assert str(refused.value) == f"Run.{name} is the class {cls.__name__}: write {cls.__name__}()"


@pytest.mark.parametrize(("name", "place", "broken"), INSIDE, ids=[place for _, place, _ in INSIDE])
def test_so_is_a_class_inside_of_a_method(name: str, place: str, broken: Any) -> None:
    with pytest.raises(UsageError, match=rf"^{place} is the class (\w+): write \1\(\)$"):
        replace(BASE, **{name: given(name, broken)})


def test_the_methods_inside_of_others_are_all_looked_at() -> None:
    assert {"Run.reward.inner", "Run.credit.code", "Run.credit.plan", "Run.credit.plan.inner", "Run.sampler.inner"} <= {
        place for _, place, _ in INSIDE
    }


@pytest.mark.parametrize(("name", "kind"), list(SETTINGS.items()))
def test_so_is_the_class_of_a_group_of_settings(name: str, kind: type) -> None:
    with pytest.raises(UsageError, match=rf"^Run\.{name} is the class {kind.__name__}: write {kind.__name__}\(\)$"):
        replace(BASE, **{name: kind})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=rf"^Run\.{name} is clip, which is no {kind.__name__}: write {kind.__name__}\(\)"):
        replace(BASE, **{name: "clip"})  # type: ignore[arg-type]


def test_what_stands_where_another_kind_of_method_belongs_is_named_with_its_place() -> None:
    with pytest.raises(UsageError, match=r"^Run\.environment is the class KernelEnvironment: write KernelEnvironment\(\)$"):
        replace(BASE, environment=KernelEnvironment)  # type: ignore[arg-type]
    with pytest.raises(
        UsageError, match=r"^Run\.environment is .*, which is no Environment: it has no prompt, extract, feedback; "
    ):
        replace(BASE, environment=TRLOO())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^Run\.reward\.inner is TRLOO\(.* as Reward takes \(evaluation\)$"):
        replace(BASE, reward=PR(inner=TRLOO()))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^Run\.credit\.plan is an int: make it a frozen dataclass"):
        replace(BASE, credit=HRD(plan=1))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"^Run\.corrections is the class .*: it is a tuple, .* write \(\w+\(\),\)$"):
        replace(BASE, corrections=next(iter(TABLES["correction"].values())))
    assert all(isinstance(cls(), Correction) for cls in TABLES["correction"].values())


@dataclass(frozen=True)
class Bad:
    """An estimator that is given as a class."""

    def __call__(self, returns_GKT: Any, valid_GKT: Any) -> Any:
        return returns_GKT


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"advantage": Bad}, "error: Settings.advantage is the class Bad: write Bad()\n"),
        ({"reward": SpeedReward}, "error: Settings.reward is the class SpeedReward: write SpeedReward()\n"),
        (
            {"environment": KernelEnvironment},
            "error: Settings.environment is the class KernelEnvironment: write KernelEnvironment()\n",
        ),
    ],
)
def test_the_loop_in_one_file_says_it_before_it_loads_a_model(
    changes: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rl_loop, "load_model", lambda name: pytest.fail("a model was loaded"))
    with pytest.raises(SystemExit) as ended:
        rl_loop.main(["--steps", "1"], **changes)
    printed = capsys.readouterr().err
    assert (ended.value.code, printed.count("\n"), printed[: len(said)]) == (2, 1, said)
