"""The CPU runner's one job: replay a Program on the inputs of every round, and count what it would cost at full shape.

Runs in a locked child that dies afterwards. It never sees expected outputs.
"""

from __future__ import annotations

from typing import Any

import torch

from rlkernel.evaluator import wire
from rlkernel.evaluator.cpu.interpreter import Interpreter, KernelFailed, OutOfBounds
from rlkernel.evaluator.devices import PROFILES, DeviceProfile
from rlkernel.evaluator.judging.counts import Counts
from rlkernel.evaluator.judging.roofline import launch_us, operator_us
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.children import Ran, RoundInputs, RoundOutputs, RunRequest, StepTime
from rlkernel.evaluator.messages.endings import Failed
from rlkernel.evaluator.program.kernel_source import KernelRejected
from rlkernel.evaluator.program.replay import Replay, StepFailed, tensors_in
from rlkernel.evaluator.program.schema import Config, Launch, MalformedProgram, Op, Program, Step
from rlkernel.evaluator.program.tensors import flatten, meta_tensors, overlapping
from rlkernel.evaluator.program.variant import Specs
from rlkernel.types import Status

WRITTEN = 0.5
"""Share of an output that extrapolated stores must reach."""
MAX_CONFIGS = 8
"""Configurations of an autotuned launch that are modelled; the cheapest is chosen."""


class _Model:
    """Modelled time of every step at full shape."""

    def __init__(self, program: Program, profile: DeviceProfile) -> None:
        self.program = program
        self.profile = profile
        self.interpreter = Interpreter(program)
        self.rows: list[StepTime] = []
        self.choices: dict[int, int] = {}
        self.stored: dict[int, float] = {}
        """Storage -> bytes that launches write to it."""
        self.unwritten = False
        """Launches write too little of an output that only they write."""
        self.made: set[int] = set()
        """Storages that operators write to."""
        self._dry: tuple[int, float, Counts] | None = None

    def _launch(self, launch: Launch, config: Config, args: dict[str, Any]) -> None:
        best: tuple[int, float, Counts] | None = None
        for index, candidate in enumerate(launch.configs[:MAX_CONFIGS]):
            counts = self.interpreter.launch(launch, candidate, args, dry=True)
            sizes: dict[int, int] = {}
            for tensor in tensors_in(args):
                storage = tensor.untyped_storage()
                sizes.setdefault(storage._cdata, storage.nbytes())
            counts.storages = list(sizes)
            us = launch_us(counts, list(sizes.values()), candidate.options.get("num_warps", 4), self.profile)
            if best is None or us < best[1]:
                best = (index, us, counts)
        self._dry = best

    def _observe(self, index: int, step: Step, read: Any, made: Any) -> None:
        if isinstance(step, Launch):
            assert self._dry is not None
            chosen, us, counts = self._dry
            for place, written in counts.stored.items():
                storage = counts.storages[place]
                self.stored[storage] = self.stored.get(storage, 0.0) + written
            self.choices[index] = chosen
            self.rows.append(StepTime(index, us, function=step.function))
        elif isinstance(step, Op):
            us = operator_us(step, read, made, self.profile)
            if us > 0:
                self.made |= {t.untyped_storage()._cdata for t in made}
                self.rows.append(StepTime(index, us, op=step.op))

    def run(self, specs: Specs) -> None:
        replay = Replay(self.program, torch.device("meta"), self._launch)
        replay.init(meta_tensors(specs.init_inputs), 0)
        outputs: list[torch.Tensor] = []
        flatten(replay.forward(meta_tensors(specs.inputs), 0, observe=self._observe), outputs)
        self.unwritten = any(
            output.untyped_storage()._cdata in self.stored
            and output.untyped_storage()._cdata not in self.made
            and self.stored[output.untyped_storage()._cdata] < WRITTEN * output.numel() * output.element_size()
            for output in outputs
        )


class _Round:
    """One round's tensors, from the message."""

    def __init__(self, given: RoundInputs, body: bytes) -> None:
        self.init_seed, self.forward_seed, self.other = given.init_seed, given.forward_seed, given.other
        self.init_inputs = [wire.tensor(span, body) for span in given.init_inputs]
        self.state = {name: wire.tensor(span, body) for name, span in given.state.items()}
        self.inputs = [wire.tensor(span, body) for span in given.inputs]

    def replay(
        self, program: Program, interpreter: Interpreter, configs: dict[int, int], skip: frozenset[int]
    ) -> tuple[Any, Any]:
        """(output, inputs after the call). The reference's weights replace those with the same name and shape."""

        def launch(step: Launch, config: Config, args: dict[str, Any]) -> None:
            interpreter.launch(step, config, args, dry=False)

        interpreter.program = program
        run = Replay(program, torch.device("cpu"), launch, configs=configs, poison_seed=self.forward_seed)
        for name, own in run.init([t.clone() for t in self.init_inputs], self.init_seed).items():
            given = self.state.get(name)
            if given is not None and given.shape == own.shape and given.dtype == own.dtype:
                own.copy_(given)
        inputs = [t.clone(memory_format=torch.preserve_format) for t in self.inputs]
        return run.forward(inputs, self.forward_seed, skip=skip), inputs


def _bytes(value: Any) -> list[bytes]:
    found: list[torch.Tensor] = []
    flatten(value, found)
    return [t.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b"" for t in found]


def _run(request: RunRequest, body: bytes) -> bytes:
    small, other = request.program, request.other or request.program
    model = _Model(request.full, PROFILES[request.profile])
    model.run(request.full_specs)
    small_interpreter = Interpreter(small)
    configs = {i: c for i, c in model.choices.items() if i < len(small.forward) and isinstance(small.forward[i], Launch)}
    if any(c >= len(small.forward[i].configs) for i, c in configs.items()):  # type: ignore[union-attr]
        raise MalformedProgram("a kernel has more configurations at full shape than at the small one")
    reply = wire.Body()
    rounds: list[RoundOutputs] = []
    live: dict[int, bool] = {}
    for index, entry in enumerate(request.rounds):
        one = _Round(entry, body)
        program = other if one.other else small
        runner = Interpreter(other) if one.other and other is not small else small_interpreter
        output, inputs = one.replay(program, runner, configs, frozenset())
        tensors: list[torch.Tensor] = []
        structure = flatten(output, tensors)
        rounds.append(
            RoundOutputs(
                structure,
                tensors=tuple(reply.add(t) for t in tensors),
                overlapping=tuple(overlapping(t) for t in tensors),
                inputs=tuple(reply.add(t) for t in inputs),
            )
        )
        if index == 0:
            honest = _bytes(output)
            for function in sorted({launch.function for launch in small.launches}):
                skipped, _ = one.replay(small, small_interpreter, configs, frozenset({function}))
                live[function] = _bytes(skipped) != honest
    return codec.pack(Ran(tuple(rounds), tuple(model.rows), model.choices, live, model.unwritten), reply)


def run(header: dict[str, Any], body: bytes) -> bytes:
    """The job: a packed `Ran` with its outputs, or a packed `Failed`."""
    try:
        return _run(codec.unpack(header, RunRequest), body)
    except OutOfBounds as error:
        failed = Failed(Status.OUT_OF_BOUNDS, str(error))
    except (KernelFailed, StepFailed) as error:
        failed = Failed(Status.RUNTIME_ERROR, str(error))
    except KernelRejected as error:
        failed = Failed(Status.COMPILE_ERROR, f"line {error.line}: {error}" if error.line else str(error))
    except (MalformedProgram, wire.BadMessage) as error:
        failed = Failed(Status.CRASH, f"the trace is not a Program: {error}")
    return codec.pack(failed)
