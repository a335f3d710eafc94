from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import pytest
import triton

from rlkernel.evaluator.program.schema import Config, Launch, Program
from rlkernel.evaluator.program.variant import KeptConfigs
from rlkernel.evaluator.trace.host_numbers import Untraceable
from rlkernel.evaluator.trace.tuning import Chosen, keeping

CONFIGS = tuple(Config({"BLOCK": size}, {}, (1, 1, 1)) for size in (64, 128, 256))
LAUNCH = Launch(0, {}, CONFIGS, 1)


def program(*together: int | None) -> Program:
    return Program((), (), (), {}, (), tuple(replace(LAUNCH, tuned_with=number) for number in together), None)


def test_launches_that_keep_different_configurations_are_tuned_alone() -> None:
    rows = [KeptConfigs(0, 3, kept) for kept in ((0, 1), (1,), (2,), (2,), ())]
    kept = keeping(program(0, 0, 1, 1, None), rows).launches
    assert [launch.tuned_with for launch in kept] == [None, None, 1, 1, None]
    assert [launch.configs for launch in kept] == [CONFIGS[:2], CONFIGS[1:2], CONFIGS[2:], CONFIGS[2:], CONFIGS]


def test_nothing_is_dropped_where_the_launches_differ() -> None:
    one = program(0, 0)
    assert keeping(one, [KeptConfigs(0, 3, (1,))]) is one, "another number of launches"
    assert keeping(one, [KeptConfigs(0, 3, (1,)), KeptConfigs(1, 3, (1,))]) is one, "another kernel"
    assert keeping(one, [KeptConfigs(0, 2, (1,)), KeptConfigs(0, 3, (1,))]) is one, "another number of configurations"


def test_of_a_choice_that_is_made_later_is_known_what_all_configurations_share() -> None:
    class Asked(Exception):
        pass

    def asks() -> NoReturn:
        raise Asked

    configs = [triton.Config({"BLOCK": size, "STAGES": 2}, num_warps=4) for size in (64, 128)]
    best = Chosen(configs, asks)
    assert (best.kwargs["STAGES"], best.num_warps, best.all_kwargs()["num_warps"]) == (2, 4, 4)
    assert best.kwargs.get("OTHER", 7) == 7 and set(best.kwargs) == {"BLOCK", "STAGES"} and len(best.kwargs) == 2
    assert str(best) == f"{configs[0]} or {configs[1]}"
    asking: list[Callable[[], Any]] = [lambda: best.kwargs["BLOCK"], lambda: {**best.kwargs}, lambda: best.kwargs.get("BLOCK")]
    for ask in asking:
        with pytest.raises(Asked):
            ask()
    with pytest.raises(Untraceable, match="the host compares the configuration"):
        assert best == configs[0]
    with pytest.raises(AttributeError):
        assert best.speed
