"""A candidate's module on the CPU: constructed with a round's weights from its Program, and called."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from rlkernel.evaluator import wire
from rlkernel.evaluator.compile.binaries import STEP_DIGITS
from rlkernel.evaluator.cpu.interpreter import Interpreter
from rlkernel.evaluator.cpu.tried import Tried
from rlkernel.evaluator.judging.references.reference_calls import as_reference, hand_over
from rlkernel.evaluator.messages.children import RoundInputs
from rlkernel.evaluator.program.replay import Replay, noted_strides
from rlkernel.evaluator.program.schema import Config, Launch, MalformedProgram, Program
from rlkernel.evaluator.program.tensors import copy_of


class Round:
    """One round's tensors, from the message."""

    def __init__(self, given: RoundInputs, body: bytes) -> None:
        self.init_seed, self.forward_seed = given.init_seed, given.forward_seed
        self.other, self.again, self.watched = given.other, given.again, given.watched
        self.init_inputs = [wire.tensor(span, body) for span in given.init_inputs]
        self.state = {name: wire.tensor(span, body) for name, span in given.state.items()}
        self.inputs = [wire.tensor(span, body) for span in given.inputs]
        self.first_inputs = [wire.tensor(span, body) for span in given.first_inputs]


def _work(config: Config) -> str:
    """What tells configurations apart that may store elsewhere."""
    return repr((config.constants, config.grid, config.blocks, config.args))


def without_data(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    """Tensors like these, of which only shapes, strides and dtypes are there."""
    return [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta") for t in tensors]


class Module:
    """A Program that was constructed with a round's weights, and can be called several times."""

    def __init__(
        self, program: Program, interpreter: Interpreter, configs: dict[int, int], first: Round, tried: Tried | None = None
    ) -> None:
        """tried: makes the launches, where they may be those of the first call."""

        def launch(step: Launch, config: Config, args: dict[str, Any]) -> None:
            run = partial(interpreter.launch, step, config, args, dry=False)
            if tried is None:
                run()
            else:
                tried.launch(step, args, run, partial(others, step, config, args))

        def others(step: Launch, chosen: Config, args: dict[str, Any]) -> list[Callable[[], Any]]:
            given = {**args, **{name: step.args[name] for name in chosen.args}}
            rest = {_work(config): config for config in step.configs if _work(config) != _work(chosen)}
            return [partial(interpreter.launch, step, one, {**given, **one.args}, dry=False) for one in rest.values()]

        self._replay = Replay(program, torch.device("cpu"), launch, configs=configs, poison_seed=first.forward_seed)
        self._replay.strides = noted_strides(program, without_data(first.init_inputs), without_data(first.inputs))
        state = self._replay.init([copy_of(tensor) for tensor in first.init_inputs], first.init_seed, first.state)
        self._names = hand_over(state, self._replay.given)
        self._replay.prepare(first.first_inputs, first.init_seed)

    def watched(self, one: Round) -> dict[str, torch.Tensor]:
        """The parameters and buffers that the reference changes, by its names, as the last call has left them."""
        state = as_reference(self._replay.state(), self._names)
        return {name: state[name] for name in one.watched if name in state}

    def call(self, one: Round, skip: frozenset[int] = frozenset()) -> tuple[Any, list[torch.Tensor]]:
        """(output, inputs after the call)."""
        inputs = [copy_of(tensor) for tensor in one.inputs]
        return self._replay.forward(inputs, one.forward_seed, skip=skip), inputs


def configs_alike(compiled: dict[int, int], full: Program, other: Program) -> dict[int, int]:
    """The configurations of another Program's launches: that of a kernel's n-th launch is the one that was compiled for its n-th
    launch at full shape, whatever other steps stand between them; beyond these, that of its last one.

    Raises MalformedProgram where a kernel has more or fewer configurations than at full shape.
    """
    kinds: dict[str, set[int]] = {}
    compiled_for: dict[str, list[int]] = {}
    for number, launch in full.numbered_launches:
        source = full.functions[launch.function].source
        kinds.setdefault(source, set()).add(len(launch.configs))
        compiled_for.setdefault(source, []).append(compiled.get(number, 0))
    found = {}
    met: dict[str, int] = {}
    for number, launch in other.numbered_launches:
        source = other.functions[launch.function].source
        if len(launch.configs) not in kinds.get(source, {len(launch.configs)}):
            raise MalformedProgram("a kernel has other configurations at full shape than at the small one")
        place = met[source] = met.get(source, -1) + 1
        choices = compiled_for.get(source, [0])
        found[number] = min(choices[min(place, len(choices) - 1)], len(launch.configs) - 1)
    return found


def step_number(name: str) -> int:
    """ "3" -> 3, "init:0" -> -1. Raises MalformedProgram."""
    number = name.removeprefix("init:")
    index = wire.whole_number(number, STEP_DIGITS)
    if index is None:
        raise MalformedProgram(f"a configuration for step {name[:20]!r}")
    return index if number == name else -1 - index
