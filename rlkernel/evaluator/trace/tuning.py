"""What an autotuner chooses at once: the launches that take one configuration, and those from which it may choose."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from triton.runtime.errors import AutotunerError

from rlkernel.evaluator.program.schema import Launch, Op, Program, Step, Tuning
from rlkernel.evaluator.program.values import Value
from rlkernel.evaluator.program.variant import KeptConfigs
from rlkernel.evaluator.trace.host_numbers import Untraceable


@dataclass(frozen=True, slots=True)
class Choice:
    """What an autotuner chooses from, for all launches of one key."""

    together: int | None
    """The number of these launches; None where there is no choice."""
    kept: tuple[int, ...]
    """The indices of the configurations that are kept."""
    call: int = 0
    """The call of forward in which the first of these launches stands, and where the choice is made; 0: before any."""
    line: int = 0
    """The line of that launch."""


class Choices:
    """The choices of all autotuners of one trace. As in Triton, a launch takes the configuration that was chosen for the first
    one of the same autotuner whose key was equal, and pruning is not asked again."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, tuple[Any, ...]], Choice] = {}
        """An autotuner, by its identity, and a key -> what is chosen there."""
        self._tuners: list[Any] = []
        """The autotuners, so that no later one takes over another one's identity."""
        self._call = 0
        self._met = set[int | None]()
        """The choices of which this call of forward has met a launch."""

    def begin_call(self) -> None:
        """A call of forward begins."""
        self._call += 1
        self._met.clear()

    def of(self, tuner: Any, kwargs: dict[str, Any], line: int) -> Choice:
        """The choice for a launch at this line with the arguments `tuner.nargs` and `kwargs`. Raises AutotunerError where pruning
        leaves no configuration, and TypeError for a key that cannot be looked up."""
        if len(tuner.configs) == 1:
            return Choice(None, (0,))
        key = id(tuner), _key(tuner, kwargs)
        if key not in self._made:
            self._tuners.append(tuner)
            self._made[key] = Choice(len(self._made), _pruned(tuner, kwargs), self._call, line)
        return self._made[key]

    def tunes(self, choice: Choice, line: int) -> bool:
        """Whether the first call of forward makes a choice in the launch at this line, which is met now."""
        first = choice.together not in self._met
        self._met.add(choice.together)
        return first and choice.call > 0 and choice.line == line


def key_of_choice(tuner: Any) -> str:
    """By which it is known which configuration an autotuner takes: the same at all sizes."""
    text = f"{tuner.base_fn.__name__}: {'; '.join(map(str, tuner.configs))}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def tuning_of(tuner: Any, args: Mapping[str, Value], hooks: Sequence[Sequence[Step]]) -> Tuning | None:
    """What the autotuner does to a launch's tensors; None where functions of the candidate's own do it. hooks: what that of each
    configuration does; one that sets arguments to zero is a name in `reset_to_zero`."""
    cleared = _cleared(args, hooks[0])
    if tuner.user_defined_pre_hook or tuner.user_defined_post_hook or cleared is None or any(hook != hooks[0] for hook in hooks):
        return None
    reset, restored = (tuple(name for name in names if name in args) for names in (tuner.reset_to_zero, tuner.restore_value))
    return Tuning(tuple(dict.fromkeys((*reset, *cleared))), restored)


def _cleared(args: Mapping[str, Value], hook: Sequence[Step]) -> list[str] | None:
    """The arguments that a hook sets to zero; None where it does anything else."""
    found: list[str] = []
    for step in hook:
        names = [name for name, value in args.items() if isinstance(step, Op) and step.args[:1] == (value,)]
        if not isinstance(step, Op) or not names or not _clears(step):
            return None
        found += names
    return found


def _clears(step: Op) -> bool:
    return step.op == "aten.zero_.default" or (step.op == "aten.fill_.Scalar" and step.args[1:] == (0,))


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
    all configurations that may be chosen have in common is known. Whoever reads what differs asks which one is chosen, and no
    other is from then on; whoever compares it raises Untraceable."""

    def __init__(self, configs: Sequence[Any], ask: Callable[[], NoReturn]) -> None:
        """`ask`: ends the trace with the question."""
        self._configs = configs
        self._ask = ask
        self.kwargs = _Numbers([config.kwargs for config in configs], ask)

    def all_kwargs(self) -> Mapping[str, Any]:
        return _Numbers([config.all_kwargs() for config in self._configs], self._ask)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _common([getattr(config, name) for config in self._configs], self._ask)

    def __eq__(self, other: object) -> bool:
        raise Untraceable(_UNKNOWN)

    def __hash__(self) -> int:
        raise Untraceable(_UNKNOWN)

    def __repr__(self) -> str:
        return " or ".join(map(str, self._configs))


class _Numbers(Mapping[str, Any]):
    """The numbers that a chosen configuration gives to the kernel, by name."""

    def __init__(self, given: Sequence[Mapping[str, Any]], ask: Callable[[], NoReturn]) -> None:
        self._given = given
        self._ask = ask

    def __getitem__(self, name: str) -> Any:
        if not any(name in one for one in self._given):
            raise KeyError(name)
        return _common([one.get(name) for one in self._given], self._ask)

    def __iter__(self) -> Iterator[str]:
        return iter(_common([list(one) for one in self._given], self._ask))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return " or ".join(map(repr, self._given))


_UNKNOWN = (
    "the host compares the configuration that an autotuner chooses, which is not known while it is traced; read the numbers that "
    "it gives to the kernel"
)


def _common(values: Sequence[Any], ask: Callable[[], NoReturn]) -> Any:
    """The value that all configurations have; asks where they differ."""
    if any(value != values[0] for value in values):
        ask()
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
