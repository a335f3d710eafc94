"""What the referee and the candidate's process do alike: modules and inputs from seeds, and one timed call."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import nn

from rlkernel.evaluator.judging.errors.comparison import bits
from rlkernel.evaluator.judging.inputs.placing import Placing, everything_on, placed
from rlkernel.evaluator.judging.inputs.stress import stressed
from rlkernel.evaluator.judging.references.reference_calls import constants, mapped, tensors_of
from rlkernel.evaluator.judging.references.related import give_others
from rlkernel.evaluator.messages.judgement import Stress
from rlkernel.evaluator.messages.native import Draw
from rlkernel.reference import Reference, load_reference
from rlkernel.reference_text import apply_small
from rlkernel.seeds import seed_generators

FLUSH_BYTES = 256 << 20
"""Bytes that are written between two timed calls, more than any L2 cache holds."""
SPIN_CYCLES = 1_000_000
"""Cycles for which a GPU waits until the host has enqueued a call, about half a millisecond."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlacedReference:
    """A reference on a device. Modules are constructed on the host and moved, as people do; inputs are drawn on the device."""

    reference: Reference
    device: torch.device
    text: str
    """The reference file's text, at the sizes that were asked for."""
    placing: Placing
    """How inputs are drawn."""

    @staticmethod
    def load(source: str, name: str, device: str, *, small: bool) -> PlacedReference:
        """Raises BrokenReference."""
        if device != "cpu":
            torch.cuda.init()  # type: ignore[no-untyped-call]  # or a seed set before the first tensor would not reach the GPU
        text = apply_small(source, name=name) if small else source
        where = torch.device(device)
        placing = Placing(where, None if device == "cpu" else lambda: everything_on(where))
        return PlacedReference(load_reference(text, small=False, name=name), where, text, placing)

    @property
    def fixed(self) -> tuple[str, ...]:
        """Patterns of the parameters whose constant values stay, see `Reference.fixed`."""
        return self.reference.fixed

    def model(self, seed: int) -> nn.Module:
        """The reference's module at the weights of `seed`. Raises BrokenReference."""
        return self.reference.model(seed).to(self.device)

    def inputs(self, seed: int) -> list[Any]:
        """Arguments of forward drawn from `seed`. Raises BrokenReference."""
        made = self.placing(lambda: self.reference.inputs(seed))
        moved: list[Any] = mapped(made, lambda tensor: placed(tensor, self.device))
        return moved

    def drawn_model(self, draw: Draw) -> nn.Module:
        """The module that a draw wants: its weights, constants and mode. Raises BrokenReference."""
        model = self.model(draw.init_seed)
        if draw.other:
            model.train(not model.training)
        if draw.perturbed:
            give_others(model, draw.init_seed, self.fixed, constants(model, self.fixed))
        return model

    def drawn_inputs(self, draw: Draw) -> list[Any]:
        """The arguments that a draw wants. Raises BrokenReference."""
        inputs = self.inputs(draw.input_seed)
        return inputs if draw.stress is Stress.NONE else stressed(inputs, draw.stress, draw.places)


class CallClock:
    """Measures device time: by events around a call, the queue filled and L2 flushed before it; on a CPU by its clock."""

    def __init__(self, device: torch.device) -> None:
        self._gpu = device.type == "cuda"
        self._flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device=device) if self._gpu else None

    def time(self, call: Callable[[], T]) -> tuple[T, float]:
        """What `call` returns, and its microseconds. All work on the device has ended then."""
        if self._flush is None:
            since = time.perf_counter()
            found = call()
            return found, (time.perf_counter() - since) * 1e6
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        self._flush.fill_(1)
        torch.cuda._sleep(SPIN_CYCLES)  # type: ignore[no-untyped-call]
        start.record()
        found = call()
        end.record()
        torch.cuda.synchronize()
        return found, float(start.elapsed_time(end)) * 1e3


@dataclass(frozen=True, slots=True)
class TimedOutputs:
    """One timed call: what it returned, its microseconds, and the sum of each output's bits."""

    output: Any
    us: float
    sums: tuple[int, ...]


def timed_call(module: nn.Module, reference: PlacedReference, draw: Draw, clock: CallClock) -> TimedOutputs:
    """Draw the inputs, call the module, and sum what it returns. Only the call itself is timed."""
    inputs = reference.drawn_inputs(draw)
    seed_generators(draw.forward_seed)
    with torch.no_grad():
        output, us = clock.time(lambda: module(*inputs))
        return TimedOutputs(output, us, sums_of(tensors_of(output)))


def sums_of(tensors: list[torch.Tensor]) -> tuple[int, ...]:
    """The sum of each tensor's bits modulo 2 to the 64: known only to who has all of it, and cheap to check later."""
    return tuple(int(bits(tensor.detach()).sum(dtype=torch.int64)) if tensor.numel() else 0 for tensor in tensors)
