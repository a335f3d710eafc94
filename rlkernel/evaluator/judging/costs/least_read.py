"""Which inputs and parameters a reference needs to the last element, whatever the method.

Followed from the outputs back: an operator whose result is needed whole needs its operands whole if each of their elements has
a part in it (`WHOLE`, what is done to each element, and windows without gaps, `windows.py`). Others claim nothing: gathers,
writes into a part. Nor does what is combined with a tensor that depends on neither inputs nor parameters, such as a mask that
forward makes, which may hide a part of it; what memory hides has to be looked at. Several views of one memory are needed whole
together, as the two halves of a gated product. Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from rlkernel.evaluator.judging.costs.operator_costs import MASKED, dense_bytes
from rlkernel.evaluator.judging.costs.windows import look_at_all
from rlkernel.evaluator.messages.judgement import Reads
from rlkernel.evaluator.program.operators import argument, base_name, operator, writes
from rlkernel.evaluator.program.schema import Op

WHOLE = {
    "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "_cdist_forward", "_euclidean_dist", "_fft_c2c", "_fft_r2c", "_log_softmax",
    "_prelu_kernel", "_softmax", "_to_copy", "_unsafe_view", "_weight_norm_interface", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "addbmm", "addmm", "addmv", "amax", "amin", "aminmax", "argmax", "argmin", "baddbmm",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "bmm", "cat", "clone", "cummax", "cummin", "cumprod", "cumsum",
    "dot", "flip", "floor_divide", "glu", "hardswish", "huber_loss", "kthvalue", "linalg_vector_norm", "log_sigmoid_forward",
    "logsumexp", "logcumsumexp", "max", "mean", "median", "min", "mm", "mse_loss", "mv", "native_group_norm",
    "native_layer_norm", "_fused_rms_norm", "native_batch_norm", "norm", "polar", "prelu", "prod", "repeat", "roll",
    "smooth_l1_loss", "soft_margin_loss", "sort", "stack", "std", "std_mean", "sum", "topk", "var", "var_mean", "xlogy",
    "_softmax_backward_data", "_log_softmax_backward_data", "native_layer_norm_backward", "native_group_norm_backward",
    "native_batch_norm_backward",
}  # fmt: skip
"""Operators in whose results each element of each operand has a part, beside those that torch itself says work by elements."""
LABELLED = {"nll_loss_forward", "nll_loss2d_forward"}
"""Operators that take one number of each row of their first operand, by its label."""
OF_ROWS = "_log_softmax"
"""The operator each number of whose result needs the row whole."""
ATTENTION = "scaled_dot_product_attention"
_Memory = int
"""A number for the memory of a tensor."""


@dataclass(frozen=True, slots=True)
class _Operand:
    memory: _Memory
    place: tuple[int, torch.Size, tuple[int, ...]]
    """Which part of the memory it is."""
    size: int
    """Bytes."""
    whole: int
    """Bytes of the memory."""


class LeastRead:
    """Follows the steps of a reference's forward. `inputs` and `parameters`, by name, are held by the caller."""

    def __init__(self, inputs: Sequence[torch.Tensor], parameters: Mapping[str, torch.Tensor]) -> None:
        self._count = 0
        self._numbers: dict[int, _Memory] = {}
        self._inputs = [self._number(tensor) for tensor in inputs]
        self._parameters = {name: self._number(tensor) for name, tensor in parameters.items()}
        self._drawn = {*self._inputs, *self._parameters.values()}
        """What depends on inputs or parameters."""
        self._steps: list[tuple[str, set[_Memory], list[_Operand], bool]] = []
        self._sizes = {
            number: dense_bytes(tensor)
            for number, tensor in zip([*self._inputs, *self._parameters.values()], [*inputs, *parameters.values()], strict=True)
        }

    def _number(self, tensor: torch.Tensor, *, new: bool = False) -> _Memory:
        """The number of a tensor's memory. New memory may have the identity of some that was given up."""
        key = tensor.untyped_storage()._cdata
        if new or key not in self._numbers:
            self._count += 1
            self._numbers[key] = self._count
        return self._numbers[key]

    def _operand(self, tensor: torch.Tensor) -> _Operand:
        place = int(tensor.storage_offset()), tensor.shape, tensor.stride()
        return _Operand(self._number(tensor), place, dense_bytes(tensor), tensor.untyped_storage().nbytes())

    def see(self, step: Op, read: Sequence[torch.Tensor], made: Sequence[torch.Tensor]) -> None:
        """Note a step. `read`: all of its arguments, `made`: its results."""
        before = {tensor.untyped_storage()._cdata for tensor in read}
        operands = [self._operand(tensor) for tensor in read]
        fresh = {t.untyped_storage()._cdata: self._number(t, new=True) for t in made if t.untyped_storage()._cdata not in before}
        if made and not fresh and not writes(step):
            return  # views
        results = {*fresh.values(), *(self._number(tensor) for tensor in made)}
        hiding = [one for one, t in zip(operands, read, strict=True) if t.numel() > 1 and one.memory not in self._drawn]
        if any(one.memory in self._drawn for one in operands):
            self._drawn |= results
        self._steps.append((base_name(step.op), results, operands, _needs_all(step, read, made) and not hiding))

    def of(self, outputs: Iterable[torch.Tensor]) -> Reads:
        """The bytes of each input and parameter of which every element is needed; 0 of the others."""
        used: dict[_Memory, dict[tuple[int, torch.Size, tuple[int, ...]], int]] = {}
        needed, rows = set[_Memory](), set[_Memory]()
        """What is needed whole, and of what something of each row is."""

        def use(one: _Operand) -> None:
            places = used.setdefault(one.memory, {})
            places[one.place] = one.size
            if sum(places.values()) >= one.whole:
                needed.add(one.memory)

        for tensor in outputs:
            use(self._operand(tensor))
        for name, results, operands, all_of_them in reversed(self._steps):
            if name in LABELLED and results & needed:
                rows.add(operands[0].memory)
            if all_of_them and (results & needed or (name == OF_ROWS and results & rows)):
                for one in operands:
                    use(one)
            elif not all_of_them:
                needed -= {one.memory for one in operands} & results  # it is another one before it is written
        sizes = {number: float(size) if number in needed else 0.0 for number, size in self._sizes.items()}
        return Reads(tuple(sizes[number] for number in self._inputs), {n: sizes[one] for n, one in self._parameters.items()})


def _needs_all(step: Op, read: Sequence[torch.Tensor], made: Sequence[torch.Tensor]) -> bool:
    """Whether each element of all operands has a part in an operator's result."""
    name = base_name(step.op)
    if name == ATTENTION:
        causal = bool(argument(step, "is_causal", False))
        return len(read) == 3 and not (causal and read[0].shape[-2] != read[1].shape[-2])
    if name in WHOLE or name in MASKED or torch.Tag.pointwise in operator(step.op).tags:
        return True
    return look_at_all(step, read, made)
