"""What an autotuner chooses at once: the launches that take one configuration, and those from which it may choose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from triton.runtime.errors import AutotunerError

from rlkernel.evaluator.program.schema import Launch, Program, Step
from rlkernel.evaluator.program.variant import KeptConfigs
from rlkernel.evaluator.trace.host_numbers import Untraceable

Choice = tuple[int | None, tuple[int, ...]]
"""The number of all launches that take one configuration, None where there is no choice; the indices of those that are kept."""


class Choices:
    """The choices of all autotuners of one trace. As in Triton, a launch takes the configuration that was chosen for the first
    one of the same autotuner whose key was equal, and pruning is not asked again."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, tuple[Any, ...]], Choice] = {}
        """An autotuner, by its identity, and a key -> what is chosen there."""
        self._tuners: list[Any] = []
        """The autotuners, so that no later one takes over another one's identity."""

    def of(self, tuner: Any, kwargs: dict[str, Any]) -> Choice:
        """The choice for a launch with the arguments `tuner.nargs` and `kwargs`. Raises AutotunerError where pruning leaves no
        configuration, and TypeError for a key that cannot be looked up."""
        if len(tuner.configs) == 1:
            return None, (0,)
        key = id(tuner), _key(tuner, kwargs)
        if key not in self._made:
            self._tuners.append(tuner)
            self._made[key] = len(self._made), _pruned(tuner, kwargs)
        return self._made[key]


def _key(tuner: Any, kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """What `Autotuner.run` looks its choice up by, the same in Triton 3.6 and 3.7: the values of the key's arguments, and the
    dtypes of all arguments that have one."""
    given = {name: value for name, value in {**tuner.nargs, **kwargs}.items() if name in tuner.arg_names}
    values = [given[name] for name in tuner.keys if name in given]
    return (*values, *(str(value.dtype) for value in given.values() if hasattr(value, "dtype")))


def _pruned(tuner: Any, kwargs: dict[str, Any]) -> tuple[int, ...]:
    """The indices of the configurations that the tuner would time. Raises AutotunerError where none is left.

    Pruning may ask the card for what only the card knows; where it fails for that, all are kept.
    """
    everything = tuple(range(len(tuner.configs)))
    try:
        left = tuner.prune_configs(kwargs)
    except (AutotunerError, Untraceable):
        raise
    except Exception:  # the candidate's own function, which may ask for what no trace knows: it leaves all of them
        return everything
    return tuple(index for index, config in enumerate(tuner.configs) if any(config is own for own in left)) or everything


class Chosen:
    """What `best_config` of an autotuner is after a launch: the choice is made later, on the card. It can be printed, and what
    all configurations that may be chosen have in common is known; anything else raises Untraceable."""

    def __init__(self, configs: Sequence[Any]) -> None:
        self._configs = configs
        self.kwargs = _Numbers([config.kwargs for config in configs])

    def all_kwargs(self) -> Mapping[str, Any]:
        return _Numbers([config.all_kwargs() for config in self._configs])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _common(name, [getattr(config, name) for config in self._configs])

    def __eq__(self, other: object) -> bool:
        raise Untraceable(_UNKNOWN.format(name="best_config"))

    def __hash__(self) -> int:
        raise Untraceable(_UNKNOWN.format(name="best_config"))

    def __repr__(self) -> str:
        return " or ".join(map(str, self._configs))


class _Numbers(Mapping[str, Any]):
    """The numbers that a chosen configuration gives to the kernel, by name."""

    def __init__(self, given: Sequence[Mapping[str, Any]]) -> None:
        self._given = given

    def __getitem__(self, name: str) -> Any:
        if not any(name in one for one in self._given):
            raise KeyError(name)
        return _common(name, [one.get(name) for one in self._given])

    def __iter__(self) -> Iterator[str]:
        return iter(_common("kwargs", [list(one) for one in self._given]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return " or ".join(map(repr, self._given))


_UNKNOWN = (
    "the host reads {name} of the configuration that an autotuner chooses, which is not known while it is traced; "
    "let what the kernel writes not depend on it, such as a sum by tl.atomic_add, or give all configurations the same"
)


def _common(name: str, values: Sequence[Any]) -> Any:
    """The value that all configurations have. Raises Untraceable."""
    if any(value != values[0] for value in values):
        raise Untraceable(_UNKNOWN.format(name=name))
    return values[0]


def keeping(program: Program, rows: Sequence[KeptConfigs]) -> Program:
    """`program` without the configurations that its tuners drop at the size that is timed, where `rows` were kept. The launches
    must be of the same kernels with as many configurations for a choice to mean the same; else nothing is dropped.

    Launches that are tuned together at this size may keep different configurations, because their keys differ at the other one.
    Each of them stands alone then: nothing is chosen at this size.
    """
    launches = program.launches
    if [(launch.function, len(launch.configs)) for launch in launches] != [(row.function, row.configs) for row in rows]:
        return program
    choices: dict[int | None, set[tuple[int, ...]]] = {}
    for launch, row in zip(launches, rows, strict=True):
        choices.setdefault(launch.tuned_with, set()).add(row.kept)
    left = iter(rows)

    def step_without(step: Step) -> Step:
        if not isinstance(step, Launch):
            return step
        kept = next(left).kept or range(len(step.configs))
        together = step.tuned_with if len(choices[step.tuned_with]) == 1 else None
        return replace(step, configs=tuple(step.configs[index] for index in kept), tuned_with=together)

    return replace(program, forward=tuple(step_without(step) for step in program.forward))
