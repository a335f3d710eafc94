"""What one forward of a reference needs, counted while it is traced: without data, at any size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.judging.costs.operations import flops
from rlkernel.evaluator.judging.costs.operator_costs import dense_bytes
from rlkernel.evaluator.judging.costs.without_kernels import without_kernels
from rlkernel.evaluator.program.operators import base_name
from rlkernel.evaluator.program.replaced import holding
from rlkernel.evaluator.program.schema import MAX_STEPS, Op
from rlkernel.evaluator.trace.lie import recording
from rlkernel.evaluator.trace.pretrained import made_of_configs
from rlkernel.evaluator.trace.recorder import Recorder
from rlkernel.evaluator.trace.shims import answering_as
from rlkernel.reference import load_reference

OPERATORS = 8000
"""How many operators a forward may call: half of the steps that a trace holds, because a candidate may take two for each."""


@dataclass(frozen=True, slots=True)
class Need:
    """What one forward of a reference needs, in elements of 4 bytes."""

    inputs: int
    outputs: int
    weights: int
    largest: int
    """The number of elements of the largest tensor that an operator returns."""
    made: int
    """The number of elements of all tensors that operators return, and of windows that products write out."""
    flops: int
    """Floating-point operations of matrix products and convolutions."""
    operators: int
    names: frozenset[str]
    """The operators that are called, without counts."""
    cramped: int = 0
    """How many convolutions and poolings have a window that is larger than what they are given: padding is much of what they
    see, and what a layer does to neighbours is not seen."""

    @property
    def traceable(self) -> bool:
        return self.operators <= OPERATORS

    @property
    def gpu_bytes(self) -> int:
        """About how many bytes a candidate's stay on a GPU holds at a time.

        These are the inputs as drawn, as given to the candidate and as given to the reference; the outputs of both sides, in
        several places in memory, and what is computed of them; and an intermediate result that is larger than the outputs.
        """
        tensors = 3.5 * self.inputs + 8 * self.outputs + 4 * self.weights + 4 * max(0, self.largest - self.outputs)
        return int(4 * tensors)


class TooLarge(Exception):
    """A reference was stopped in the middle, because it is known not to fit."""


class TooManyElements(TooLarge):
    """A reference was stopped because of the elements that it makes, which may be fewer at other sizes."""


class TooMuchMemory(Exception):
    """A tensor that no GPU of this kind can hold."""

    def __init__(self, nbytes: int, profile: DeviceProfile) -> None:
        super().__init__(f"a tensor of {nbytes / 1e9:,.0f} GB, and an {profile.name} has {profile.memory_bytes / 1e9:,.0f} GB")


class _Counting(Recorder):  # type: ignore[no-untyped-call]
    """Counts what operators return and compute; views return nothing new."""

    def __init__(self, profile: DeviceProfile, most: int | None) -> None:
        super().__init__(trusted=True)
        self._profile = profile
        self.made = self.largest = self.operators = 0
        self.flops = 0.0
        self.names: set[str] = set()
        self.cramped = 0
        self._most = most
        self.counts = False
        """Whether it is forward that runs."""

    def record_call(self, name: str, call: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        result = super().record_call(name, call, args, kwargs)
        with torch._C.DisableTorchFunction():
            made = _tensors(result)
            for tensor in made:
                if (nbytes := tensor.untyped_storage().nbytes()) > self._profile.memory_bytes:
                    raise TooMuchMemory(nbytes, self._profile)
            if self.counts:
                self._count(_tensors([args, kwargs]), made)
        return result

    def _count(self, read: list[torch.Tensor], made: list[torch.Tensor]) -> None:
        known = {t.untyped_storage()._cdata for t in read}
        new = [t for t in made if t.untyped_storage()._cdata not in known]
        count, step = sum(t.numel() for t in new), self.steps[-1]
        self.operators += 1
        self.names.add(step.op if isinstance(step, Op) else "")
        self.made += count
        self.largest = max(self.largest, count)
        if new and isinstance(step, Op):
            operations = flops(step, read, made)
            self.flops += operations
            self.made += sum(map(_written_out, read)) if operations else 0
            self.cramped += _is_cramped(step, read)
        if self.operators > OPERATORS or len(self.steps) >= MAX_STEPS:
            raise TooLarge(f"forward has more than {OPERATORS} operators: let loops take fewer steps, or make them one operator")
        if self._most is not None and self.made > self._most:
            raise TooManyElements(f"forward makes more than {self._most:,} elements")


def need(source: str, name: str, profile: DeviceProfile, most: int | None = None) -> Need:
    """Count what one forward of the file needs.

    Raises BrokenReference for a file that cannot be used, TooLarge once more than OPERATORS have run or more than `most` elements
    were made, and whatever forward raises on tensors without data.
    """
    reference = load_reference(source, small=False, name=name)
    recorder = _Counting(profile, most)
    with answering_as(profile), without_kernels(name), recording(recorder):
        inputs = reference.inputs(0)
        with made_of_configs(reference.init_inputs(0)):
            model = reference.model(0)
        state = [*nn.Module.parameters(model), *nn.Module.buffers(model)]
        recorder.reading.inputs |= _memory(recorder, _tensors(inputs))
        recorder.reading.state |= _memory(recorder, state)
        recorder.reading.drawn = {}
        recorder.phase()
        recorder.reading.begin()
        recorder.counts = True
        with holding(model):
            output = model(*inputs)
        recorder.counts = False
        recorder.reading.finish()
        weights = sum(t.numel() for t in state)
        given, returned = (sum(t.numel() for t in _tensors(value)) for value in (inputs, output))
    counts = (recorder.largest, recorder.made, int(recorder.flops), recorder.operators)
    return Need(given, returned, weights, *counts, frozenset(recorder.names), recorder.cramped)


def _written_out(operand: torch.Tensor) -> int:
    """The elements of an operand that a CPU writes next to one another before it multiplies: windows that share what they
    overlap in, as those of `unfold` do."""
    own = math.prod(size for size, stride in zip(operand.size(), operand.stride(), strict=True) if stride != 0)
    return own if own * operand.element_size() > dense_bytes(operand) else 0


def _is_cramped(step: Op, read: list[torch.Tensor]) -> bool:
    """Whether an operator's window is larger than its first argument along any axis."""
    name = base_name(step.op)
    if name == "convolution":
        window = list(read[1].shape[2:])
    elif "pool" in name and "adaptive" not in name and len(step.args) > 1 and isinstance(step.args[1], list):
        window = [size for size in step.args[1] if isinstance(size, int)]
    else:
        return False
    axes = read[0].shape[-len(window) :] if window else []
    return any(size > extent for size, extent in zip(window, axes, strict=False))


def _memory(recorder: Recorder, tensors: list[torch.Tensor]) -> set[int]:
    return {recorder.ids.storage(recorder.ids.of(tensor)) for tensor in tensors}


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]
