from dataclasses import replace

from rlkernel.evaluator.program.schema import Config, Launch, Program
from rlkernel.evaluator.program.variant import KeptConfigs
from rlkernel.evaluator.trace.tuning import keeping

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
