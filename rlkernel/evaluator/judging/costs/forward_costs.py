"""What one forward of a traced reference costs by the model of time, and the floors that no candidate can be below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.judging.costs.halves import HALF, Halves, seen_in_half
from rlkernel.evaluator.judging.costs.least_read import LeastRead
from rlkernel.evaluator.judging.costs.least_work import LEAST, Matters, least_share
from rlkernel.evaluator.judging.costs.least_written import LeastWritten
from rlkernel.evaluator.judging.costs.operations import flops, least_flops, sum_length
from rlkernel.evaluator.judging.costs.operator_costs import NoCost, dense_bytes, moved_bytes, of_first_bytes, read_bytes, taken
from rlkernel.evaluator.judging.costs.roofline import floor_us, is_free, operator_us, physical_floor_us
from rlkernel.evaluator.messages.judgement import NOTHING, Reads
from rlkernel.evaluator.program.operators import writes
from rlkernel.evaluator.program.schema import Op, Program
from rlkernel.types import OpFact, Precision


@dataclass(frozen=True, slots=True)
class Costs:
    """The reference's modelled cost at full shape."""

    us: float
    ops: tuple[OpFact, ...]
    floor_us: float
    measured_floor_us: float
    """The floor of a measured time, see `roofline.physical_floor_us`."""
    products: float = 0.0
    """Operations of matrix products, convolutions and their like."""
    least_share: float = LEAST
    """The share of them that a candidate must do where they are counted."""
    unpriced: tuple[str, ...] = ()
    """Operators that the model of time does not know: then no time can be modelled."""
    written: tuple[float, ...] = ()
    """The bytes that forward writes of each output, see `least_written`."""
    reads: Reads = NOTHING
    """What forward needs to the last element, see `least_read`."""


class ForwardCosts:
    """The cost of one forward, from the operators that are seen while it is replayed without data."""

    def __init__(
        self, inputs: Sequence[torch.Tensor], state: Mapping[str, torch.Tensor], parameters: Mapping[str, torch.Tensor],
        profile: DeviceProfile, precision: Precision, matters: Matters, part: float,
    ) -> None:  # fmt: skip
        """matters, part: as in `TracedReference.costs`."""
        self._profile, self._precision, self._matters, self._part = profile, precision, matters, part
        self._rows: dict[str, list[float]] = {}
        """Operator -> the modelled time of each of its calls, in microseconds."""
        self._read = {_storage(tensor): 0.0 for tensor in inputs}
        """Storage of an input -> the bytes that forward reads of it at least."""
        self._dependent = set(self._read)
        """The storages whose contents depend on the inputs."""
        parts = matters.inputs or (1.0,) * len(inputs)
        self._shares = {_storage(tensor): share for tensor, share in zip(inputs, parts, strict=True)}
        self._products: dict[torch.dtype, float] = {}
        """Operations of matrix products and their like, by the dtype in which they may be made."""
        self._needed, self._mattering, self._unpriced = list[float](), list[float](), list[str]()
        self._written = LeastWritten([*inputs, *state.values()])
        self._halves = Halves()
        self._least_read = LeastRead(inputs, parameters)

    def see(self, index: int, step: Any, read: Any, made: Any) -> None:
        """Count the step of this number, which takes and makes these tensors."""
        if not isinstance(step, Op):
            return
        self._written.see(step, read, made)
        self._least_read.see(step, read, made)
        if any(_storage(t) in self._dependent for t in read):
            self._dependent.update(_storage(t) for t in [*made, *(read if writes(step) else ())])
        self._halves.see(step, read, made)
        self._count_products(index, step, read, made)
        try:
            us = operator_us(step, read, made, self._profile, self._precision)
        except NoCost:
            us = self._profile.launch_us
            self._unpriced.append(step.op)
        if us > 0:
            self._rows.setdefault(".".join(step.op.split(".")[:2]), []).append(us)
        if not is_free(step, read, made):
            self._count_read(step, read, made)

    def _count_products(self, index: int, step: Op, read: Any, made: Any) -> None:
        work = flops(step, read, made)
        if not work:
            return
        dtype = HALF if made[0].dtype is torch.float32 and self._halves.multiplied(read) else made[0].dtype
        self._products[dtype] = self._products.get(dtype, 0.0) + work
        self._needed.append(least_flops(step, read, made))
        share = self._matters.steps.get(index)
        self._mattering.append(share.operations(work, sum_length(step, read, made)) if share else work)

    def _count_read(self, step: Op, read: Any, made: Any) -> None:
        used = taken(step, read)
        for tensor in used:
            key = _storage(tensor)
            if key in self._read:
                most = min(read_bytes(step, tensor), moved_bytes(step, [tensor, *used[1:]], made))
                if tensor is used[0]:
                    most = min(most, of_first_bytes(step, made))
                self._read[key] = max(self._read[key], most * self._shares[key])

    def of(self, program: Program, outputs: list[torch.Tensor]) -> Costs:
        """The costs of the whole forward of this Program, which has these outputs."""
        total = sum(sum(us) for us in self._rows.values())
        ops = [OpFact(op, len(us), sum(us), sum(us) / total) for op, us in self._rows.items()]
        ops.sort(key=lambda fact: -fact.us)
        least = self._written.of(outputs)
        moved = min(_distinct_bytes(outputs), sum(least))
        products = dict(self._products)
        matter = self._part * sum(self._mattering) / max(1.0, sum(products.values()))
        if seen_in_half(outputs):
            products[HALF] = products.get(HALF, 0.0) + products.pop(torch.float32, 0.0)
        floor = floor_us(sum(self._read.values()), moved, products, self._profile, self._precision, matter)
        made = {_storage(output): dense_bytes(output) for output in outputs}
        written = sum(size for key, size in made.items() if key in self._dependent and key not in self._read)
        is_whole = not self._matters.steps
        share = least_share(program, 1.0 if is_whole and self._part >= 1.0 else matter)
        reads = self._least_read.of(outputs) if is_whole else NOTHING
        return Costs(
            total, tuple(ops), floor, physical_floor_us(written, self._profile), sum(self._needed), share, tuple(self._unpriced),
            least, reads,
        )  # fmt: skip


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _distinct_bytes(tensors: list[torch.Tensor]) -> int:
    """The bytes of the memory that tensors lie in, where several may lie in the same."""
    found: dict[int, tuple[int, int]] = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        found[storage._cdata] = storage.nbytes(), found.get(storage._cdata, (0, 0))[1] + dense_bytes(tensor)
    return sum(min(whole, parts) for whole, parts in found.values())
