"""What a kernel computes: Triton's interpreter with a GPU's arithmetic, and a count of the work.

Where Triton's interpreter differs from a GPU (bfloat16 as integers, NaN in minimum and maximum, conversions that wrap), the GPU's
meaning is put here. Where the language leaves a result open, the worst that it allows is taken, so that no kernel depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as triton_interpreter
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from rlkernel.evaluator.cpu import exactness, libdevice, outcomes, scaled_products
from rlkernel.evaluator.cpu.numbers import Array, convert, is_bits, narrow, tf32, widen
from rlkernel.evaluator.judging.costs.counts import Counts

SIMPLE, SLOW, LIBRARY = 1.0, 4.0, 32.0
"""Operations per element on the general units, of which a multiply-add is two: an addition; what is begun at a quarter of the
rate, such as a rounding to whole numbers or an atomic; a function of the math library, which is 16 instructions at least."""
OF_WHOLE_NUMBERS = 8.0
"""Operations of a division of whole numbers of 32 bits, by one that the compiler knows; of 64 bits they are four times that."""
WHOLE, LONG, LONG_PRODUCT = 2.0, 4.0, 12.0
"""Operations of an addition, a comparison or the like of whole numbers of 32 bits, which begins at half the rate of a
multiply-add; of 64 bits, which is two instructions for 32; and of a product of 64 bits, three of these that multiply and add."""
AT_ONCE_BITS = 256
"""Bits of an operand's row that one instruction of a tensor core multiplies before it adds to the accumulator: 16 elements of
half precision, `k16` of PTX's `mma` and `wgmma`, or 32 of 8 bits."""
FLOAT64 = 2.0
"""Factor on the work of float64."""
_SPECIAL = {np.exp, np.exp2, np.log, np.log2, np.sqrt}
_OF_LIBRARY = {np.sin, np.cos}
_DIVIDES = {np.divide, np.fmod}
_OF_ONE_BIT = {np.add: np.logical_xor, np.subtract: np.logical_xor, np.multiply: np.logical_and}
"""What integer arithmetic is where an integer has one bit: 1 + 1 is 0. numpy takes truth values for something else."""
LITTLE = (tl.int8, tl.int16, tl.uint8, tl.uint16)
"""Whole numbers of which not many add up to more than there is room for."""
_ERF = libdevice.function("__nv_erf") or np.vectorize(math.erf)


class NotInterpreted(NotImplementedError, AttributeError):
    """The CPU runner has no meaning for this part of the language."""


def _clamped(x: Array, low: Array, high: Array) -> Array:
    """As `min(max(x, low), high)` on a GPU: NaN gives the lower bound."""
    return np.asarray(np.fmin(np.fmax(x, low), high))


def _added_in_half(left: Array, right: Array, total: Array, step: int) -> Array:
    """A product added to an accumulator of half precision, which is rounded after every `step` products of an element."""
    with np.errstate(over="ignore"):  # half precision overflows to infinity, as a GPU's does
        for begin in range(0, left.shape[-1], step):
            part = slice(begin, begin + step)
            made = np.matmul(left[..., part], right[..., part, :], dtype=np.float32) + total
            total = made.astype(np.float16)
    return total


def _of_whole_numbers(dtype: Any) -> float:
    return OF_WHOLE_NUMBERS * (4.0 if dtype.primitive_bitwidth == 64 else 1.0)


class Arithmetic(InterpreterBuilder):  # type: ignore[misc]
    """Triton's interpreter with the arithmetic of a GPU, counted in `counts`."""

    def __init__(self) -> None:
        super().__init__()
        self.dry = False
        self.counts = Counts()
        self.makes_pointers = False
        """Whether a kernel has made a pointer of another one or of a number, which may point between two elements."""
        self.special = LIBRARY / 2
        """Operations in the time of a special function, on the card on which launches are priced."""
        self.adds_in_little = False
        """Whether an accumulator of the running kernel has half precision, or it adds up whole numbers of 8 or 16 bits."""
        self.lost: dict[int, exactness.Lost] = {}
        """Lines of the running kernel, and the whole numbers that conversions there do not hold."""
        self.outcomes = outcomes.Outcomes()
        """What comparisons of the running kernel have come to."""
        self.elements_meet = False
        """Whether an element of a block of the running kernel has got to another's place, or was put together with it."""
        self.order = 0
        """The seed of the orders into which elements are brought where a kernel allows any."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("create_", "get_")):
            raise NotInterpreted(f"the CPU runner cannot interpret {name.partition('_')[2]}: only a GPU runs it")
        raise AttributeError(name)

    def _work(self, data: Array, dtype: Any, each: float) -> None:
        kind = dtype.scalar
        self.counts.compute(float(np.size(data)), each * (FLOAT64 if kind == tl.float64 else 1.0), floats=kind.is_floating())

    def _of_binary(self, op: Any, dtype: Any) -> float:
        """What an operation on two operands costs: a division is a special function, and a few products around it."""
        if op not in _DIVIDES and not (dtype.is_int() and dtype.primitive_bitwidth == 64):
            return SIMPLE if dtype.is_floating() else WHOLE
        if op not in _DIVIDES:
            return LONG_PRODUCT if op is np.multiply else LONG
        return self.special + SLOW if dtype.is_floating() else _of_whole_numbers(dtype)

    def _of_unary(self, op: Any) -> float:
        return self.special if op in _SPECIAL else LIBRARY if op in _OF_LIBRARY else SLOW

    def get_bf16(self, value: float) -> Any:
        return self._constant(value, tl.bfloat16)

    def get_fp8e4nv(self, value: float) -> Any:
        return self._constant(value, tl.float8e4nv)

    def get_fp8e5(self, value: float) -> Any:
        return self._constant(value, tl.float8e5)

    def _constant(self, value: float, dtype: Any) -> Any:
        return TensorHandle(narrow(np.array([value], dtype=np.float32), dtype), dtype)

    def _elementwise(self, operands: list[Any], op: Callable[..., Any], each: float, kind: Any) -> Any:
        """`op` on the operands' values, as the Triton type `kind`; a result of truth values has the type int1."""
        values = [widen(operand.data, operand.dtype) for operand in operands]
        made = np.asarray(op(*values))
        self._work(made, kind, each)
        if made.dtype == np.bool_:
            return TensorHandle(made, tl.int1)  # Triton keeps the operands' type, which comparisons would carry into masks
        if is_bits(kind):
            return TensorHandle(narrow(made, kind), kind)
        dtype = triton_interpreter._get_np_dtype(kind)
        return TensorHandle(made if made.dtype == dtype else made.astype(dtype), kind)

    def binary_op(self, lhs: Any, rhs: Any, op: Any) -> Any:
        op = _OF_ONE_BIT.get(op, op) if lhs.dtype.scalar == tl.int1 else op
        self.adds_in_little |= op is np.add and lhs.dtype.scalar in LITTLE
        made = self._elementwise([lhs, rhs], op, self._of_binary(op, lhs.dtype.scalar), lhs.dtype.scalar)
        if op in outcomes.COMPARISONS:
            outcomes.note(self, op, lhs, rhs, made.data)
        return made

    def unary_op(self, arg: Any, op: Any) -> Any:
        return self._elementwise([arg], op, self._of_unary(op), arg.dtype.scalar)

    def ternary_op(self, lhs: Any, rhs: Any, other: Any, op: Any) -> Any:
        return self._elementwise([lhs, rhs, other], op, SIMPLE, other.dtype.scalar)

    def get_all_ones_value(self, type: Any) -> Any:
        """What `~x` flips bits with. Triton's interpreter writes -1, which no unsigned number of numpy is."""
        kind = triton_interpreter._get_np_dtype(type)
        if not np.issubdtype(kind, np.unsignedinteger):
            return super().get_all_ones_value(type)
        return TensorHandle(np.full(1, np.iinfo(kind).max, dtype=kind), type.scalar)

    def create_select(self, condition: Any, lhs: Any, rhs: Any) -> Any:
        made = np.where(condition.data, lhs.data, rhs.data)
        self._work(made, rhs.dtype, SIMPLE)
        return TensorHandle(made, rhs.dtype.scalar)

    def create_fma(self, x: Any, y: Any, z: Any) -> Any:
        return self._elementwise([x, y, z], libdevice.fused, 2 * SIMPLE, z.dtype.scalar)

    def create_clampf(self, arg: Any, low: Any, high: Any, propagate_nans: Any) -> Any:
        keep = str(propagate_nans).rpartition(".")[2] == "ALL"
        return self.ternary_op(arg, low, high, np.clip if keep else _clamped)

    def create_minnumf(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, np.fmin)

    def create_maxnumf(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, np.fmax)

    def create_idiv(self, lhs: Any, rhs: Any) -> Any:
        def truncated(x: Array, y: Array) -> Array:
            return np.asarray((x - np.fmod(x, y)) // y)

        return self._elementwise([lhs, rhs], truncated, _of_whole_numbers(lhs.dtype.scalar), lhs.dtype.scalar)

    def create_umulhi(self, lhs: Any, rhs: Any) -> Any:
        self._work(lhs.data, lhs.dtype, SLOW)
        return super().create_umulhi(lhs, rhs)

    def create_erf(self, arg: Any) -> Any:
        return self._elementwise([arg], _ERF, LIBRARY, arg.dtype.scalar)

    def create_rsqrt(self, arg: Any) -> Any:
        return self._elementwise([arg], lambda x: 1 / np.sqrt(x), self.special, arg.dtype.scalar)

    def create_fabs(self, arg: Any) -> Any:
        self._work(arg.data, arg.dtype, SIMPLE)
        return super().create_fabs(arg)

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        self._work(src.data, dst_type, SIMPLE)
        exactness.note(self, src, dst_type)
        return TensorHandle(convert(src.data, src.dtype, dst_type), dst_type.scalar)

    def create_fp_to_fp(self, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        if "RTZ" in str(rounding_mode):
            self._work(src.data, dst_type, SIMPLE)
            return super().create_fp_to_fp(src, dst_type, rounding_mode)
        return self.cast_impl(src, dst_type)

    def create_bitcast(self, src: Any, dst_type: Any) -> Any:
        self.makes_pointers |= dst_type.scalar.is_ptr()
        return TensorHandle(np.ascontiguousarray(src.data).view(triton_interpreter._get_np_dtype(dst_type)), dst_type.scalar)

    create_int_to_ptr = create_bitcast
    create_ptr_to_int = create_bitcast

    def meet(self) -> None:
        """Note that elements of a block meet."""
        self.elements_meet = True

    def create_histogram(self, data: Any, bins: Any, mask: Any) -> Any:
        self.meet()
        self._work(data.data, data.dtype, SLOW)
        values = data.data if mask is None else data.data[np.broadcast_to(mask.data, data.data.shape)]
        inside = values[(values >= 0) & (values < bins)]
        return TensorHandle(np.bincount(inside.astype(np.int64).reshape(-1), minlength=bins).astype(np.int32), tl.int32)

    def create_gather(self, src: Any, indices: Any, axis: Any) -> Any:
        self.meet()
        self._work(indices.data, src.dtype, SLOW)
        return super().create_gather(src, indices, axis)

    def create_trans(self, arg: Any, perm: Any) -> Any:
        self.meet()
        return super().create_trans(arg, perm)

    def create_split(self, val: Any) -> Any:
        self.meet()
        return super().create_split(val)

    def create_reshape(self, arg: Any, shape: Any, allow_reorder: bool) -> Any:
        self.meet()
        data = self._reordered(arg.data) if allow_reorder else arg.data
        return TensorHandle(data.reshape(shape), arg.dtype.scalar)

    def create_cat(self, lhs: Any, rhs: Any) -> Any:
        """Only called where the kernel allows that elements are reordered."""
        self.meet()
        return TensorHandle(self._reordered(np.concatenate([lhs.data, rhs.data])), lhs.dtype.scalar)

    def _reordered(self, data: Array) -> Array:
        """The elements in an order that depends on their number alone, which a layout may bring about and no source tells."""
        flat = np.ascontiguousarray(data).reshape(-1)
        order = np.random.default_rng([self.order, flat.size]).permutation(flat.size)
        return np.asarray(flat[order].reshape(data.shape))

    def create_dot(self, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any) -> Any:
        self.meet()
        name = a.dtype.scalar.name
        precision = str(input_precision).lower()
        passes = (3.0 if precision.endswith("x3") else 6.0 if precision.endswith("x6") else 1.0) if name == "fp32" else 1.0
        work = 2.0 * a.data.size * b.data.shape[-1]
        self.counts.on_floats += work
        self.counts.dots += work
        if name == "fp64" or (name == "fp32" and "ieee" in precision):
            self.counts.compute(work, FLOAT64 if name == "fp64" else 1.0)
        else:
            kind = {"fp32": "tf32", "bf16": "bf16"}.get(name, "fp16")
            self.counts.matrix_flops[kind] = self.counts.matrix_flops.get(kind, 0.0) + passes * work  # products of parts
            self.counts.operations += work
        left, right = widen(a.data, a.dtype), widen(b.data, b.dtype)
        if name == "fp32" and "ieee" not in precision and passes == 1.0:
            left, right = tf32(left), tf32(right)
        if left.dtype == np.float16:  # products of half precision are exact in float32
            left, right = left.astype(np.float32), right.astype(np.float32)
        kind_of_result = d.dtype.scalar
        if kind_of_result == tl.float16:
            self.adds_in_little = True
            step = AT_ONCE_BITS // a.dtype.scalar.primitive_bitwidth
            return TensorHandle(_added_in_half(left, right, d.data, step), tl.float16)
        total = widen(d.data, d.dtype)
        wide = np.promote_types(total.dtype, np.float32) if total.dtype.kind == "f" else total.dtype
        made = np.matmul(left, right, dtype=wide) + total
        if is_bits(kind_of_result):
            return TensorHandle(narrow(made, kind_of_result), kind_of_result)
        return TensorHandle(made.astype(triton_interpreter._get_np_dtype(kind_of_result)), kind_of_result)

    def create_dot_scaled(
        self,
        a: Any,
        a_scale: Any,
        a_form: Any,
        b: Any,
        b_scale: Any,
        b_form: Any,
        fast: bool,
        a_packed: Any,
        b_packed: Any,
        d: Any,
    ) -> Any:
        kind = scaled_products.computed_in((a_form.name, b_form.name))
        left = scaled_products.widened(a, a_scale, a_form.name, bool(a_packed), kind, first=True, fast=bool(fast))
        right = scaled_products.widened(b, b_scale, b_form.name, bool(b_packed), kind, first=False, fast=bool(fast))
        return Arithmetic.create_dot(self, left, right, d, "ieee", 0)

    def create_extern_elementwise(self, lib: Any, path: Any, symbol: Any, args: Any, kind: Any, pure: Any) -> Any:
        call = libdevice.function(str(symbol))
        if call is None:
            raise NotInterpreted(f"the CPU runner cannot interpret libdevice's {symbol}: only a GPU runs it")
        data = np.asarray(call(*[a.data for a in args])).reshape(np.broadcast_shapes(*[a.data.shape for a in args]))
        self._work(data, kind, LIBRARY)
        dtype = triton_interpreter._get_np_dtype(kind.scalar)
        return TensorHandle(data.astype(dtype), kind.scalar)

    def create_inline_asm(self, asm: Any, constraints: Any, values: Any, kind: Any, pure: Any, pack: Any) -> Any:
        raise NotInterpreted("the CPU runner cannot interpret inline assembly: only a GPU runs it")

    def create_print(self, prefix: Any, hexadecimal: Any, values: Any, signed: Any) -> None:
        """A kernel's prints are dropped: nobody reads them."""

    def create_assert(self, condition: Any, message: Any) -> None:
        """Device-side assertions are not compiled in, as in Triton without debugging."""
