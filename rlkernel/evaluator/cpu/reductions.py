"""`tl.reduce` and `tl.associative_scan` with a kernel's own combine function, on whole arrays, for Triton's interpreter.

Triton's interpreter calls the combine function once per element, which takes seconds for one row. Here it is called on halves:
neighbours first, so that the order is kept and associativity is all that is asked, as on the GPU. A combine function that
branches on its values has no meaning for arrays; for that one the interpreter's own way remains.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as triton_interpreter
from triton.runtime.interpreter import ReduceOps, ReduceScanOpInterface, ScanOps, TensorHandle

from rlkernel.evaluator.cpu.kinds import varies
from rlkernel.evaluator.cpu.loaded import is_known, is_loaded, know, mark

Array = np.ndarray[Any, Any]
Combine = Callable[[list[Array], list[Array]], list[Array]]
"""(left, right) -> combined, one array per value, all of one shape."""


class _Branches(Exception):
    """The combine function asks whether an array is true."""


@contextmanager
def _undecided() -> Iterator[None]:
    """Inside, the truth of a tensor with several elements is an error, rather than True as in Triton's interpreter."""
    before = tl.tensor.__bool__

    def decide(tensor: Any) -> bool:
        if tensor.handle.data.size > 1:
            raise _Branches
        return bool(before(tensor))

    tl.tensor.__bool__ = decide
    try:
        yield
    finally:
        tl.tensor.__bool__ = before


def _any_place(is_better: Callable[[Any, Any], Any]) -> Any:
    """The combine function of a place that may be any of those with the best value, as a library function: the last of them.
    Triton's own asks for the truth of its values, which memory decides."""

    def combine(value: Any, place: Any, other: Any, other_place: Any) -> tuple[Any, Any]:
        first = is_better(value, other)
        return tl.where(first, value, other), tl.where(first, place, other_place)

    return types.SimpleNamespace(fn=combine)


_ANY_PLACE = (
    (tl.standard._argmax_combine_tie_break_fast, _any_place(operator.gt)),
    (tl.standard._argmin_combine_tie_break_fast, _any_place(operator.lt)),
)


def _combine(function: Any, given: Sequence[Any]) -> Combine:
    """A kernel's combine function over numpy arrays, such as those of the tensors `given`."""
    function = next((ours for theirs, ours in _ANY_PLACE if theirs is function), function)
    dtypes = [tensor.dtype for tensor in given]
    marked = mark if is_loaded(list(given)) else list

    def tensors(arrays: list[Array]) -> list[Any]:
        made = [
            tl.tensor(TensorHandle(np.ascontiguousarray(array), dtype.scalar), tl.block_type(dtype.scalar, list(array.shape)))
            for array, dtype in zip(arrays, dtypes, strict=True)
        ]
        return list(marked(made))

    def call(left: list[Array], right: list[Array]) -> list[Array]:
        result = function.fn(*tensors(left), *tensors(right))
        parts = result if isinstance(result, (tuple, tl.core.tuple)) else (result,)
        data: list[Any] = [part.handle.data if isinstance(part, tl.tensor) else getattr(part, "value", part) for part in parts]
        return [np.broadcast_to(d, array.shape).astype(array.dtype) for d, array in zip(data, left, strict=True)]

    return call


def halve(values: list[Array], combine: Combine) -> list[Array]:
    """Reduce the first axis, whose size is a power of two: (n, ...) -> (1, ...)."""
    while values[0].shape[0] > 1:
        values = combine([v[0::2] for v in values], [v[1::2] for v in values])
    return values


def scan(values: list[Array], combine: Combine) -> list[Array]:
    """Inclusive scan of the first axis, whose size is a power of two, in about two calls per element: (n, ...) -> (n, ...)."""
    if values[0].shape[0] == 1:
        return values
    odd = scan(combine([v[0::2] for v in values], [v[1::2] for v in values]), combine)
    before = [np.concatenate([v[:1], part[:-1]]) for v, part in zip(values, odd, strict=True)]
    even = combine(before, [v[0::2] for v in values])  # at least of size one: tensors have powers of two; the first is dropped
    found = [np.empty_like(v) for v in values]
    for out, value, at_odd, at_even in zip(found, values, odd, even, strict=True):
        out[1::2], out[2::2], out[0] = at_odd, at_even[1:], value[0]
    return found


def _reduce(slow: Any) -> Any:
    def generic_reduce(self: Any, given: Any) -> Any:
        axis = self.axis
        arrays = [v.handle.data.reshape(-1) if axis is None else np.moveaxis(v.handle.data, axis, 0) for v in given]
        try:
            with _undecided():
                made = [part[0] for part in halve(arrays, _combine(self.combine_fn, given))]
        except _Branches:
            return slow(self, given)
        if self.keep_dims:
            rank = given[0].handle.data.ndim
            made = [part.reshape((1,) * rank) if axis is None else np.expand_dims(part, axis) for part in made]
        return [self.to_tensor(part if part.ndim else part.item(), v.dtype) for part, v in zip(made, given, strict=True)]

    return generic_reduce


def _scan(slow: Any) -> Any:
    def generic_scan(self: Any, given: Any) -> Any:
        arrays = [np.moveaxis(v.handle.data, self.axis, 0) for v in given]
        try:
            with _undecided():
                made = scan(arrays, _combine(self.combine_fn, given))
        except _Branches:
            return slow(self, given)
        return [self.to_tensor(np.moveaxis(part, 0, self.axis), v.dtype) for part, v in zip(made, given, strict=True)]

    return generic_scan


_SUMS = (tl.standard._sum_combine, tl.standard._prod_combine)
_PLACES = (tl.standard._argmin_combine_tie_break_left, tl.standard._argmax_combine_tie_break_left)


def _unlike_numpy(combine: Any, given: Any) -> bool:
    """Whether numpy's own reduction differs from a GPU's: half precision sums round at every step; NaN has no place."""
    data, dtype = given[0].handle.data, given[0].dtype.scalar
    if combine in _SUMS:
        return dtype in (tl.float16, tl.bfloat16)
    return combine in _PLACES and data.dtype.kind == "f" and bool(np.isnan(data).any())


def _apply(fast: Any, slow: str, met: Callable[[], None]) -> Any:
    def apply_impl(self: Any, given: Any) -> Any:
        met()
        open_ = any(varies(v.handle) and not is_loaded(v) for v in given)  # more than its ends may decide
        self.from_memory, self.known = is_loaded(given) or open_, is_known(given) and not open_
        if not _unlike_numpy(self.combine_fn, given):
            return fast(self, given)
        if not getattr(self, "reverse", False):
            return getattr(self, slow)(given)
        turned = tuple(self.to_tensor(np.flip(v.handle.data, axis=self.axis), v.dtype) for v in given)
        return [self.to_tensor(np.flip(v.handle.data, axis=self.axis), v.dtype) for v in getattr(self, slow)(turned)]

    return apply_impl


def _to_tensor(plain: Any) -> Any:
    def to_tensor(self: Any, data: Any, dtype: Any) -> Any:
        if isinstance(data, np.integer):  # numpy sums 32 bits into 64, a GPU wraps
            data = data.astype(triton_interpreter._get_np_dtype(dtype))
        made = plain(self, data, dtype)
        if not self.from_memory:
            return made
        if self.known and isinstance(made, tl.tensor):
            know(made.handle)
        return mark(made)

    return to_tensor


def install(met: Callable[[], None]) -> None:
    """For good: Triton's interpreter in this process reduces and scans by halves, and marks what comes from memory. `met` is
    called wherever elements of a block are put together so."""
    ReduceScanOpInterface.from_memory = ReduceScanOpInterface.known = False
    ReduceScanOpInterface.to_tensor = _to_tensor(ReduceScanOpInterface.to_tensor)
    ReduceOps.apply_impl = _apply(ReduceOps.apply_impl, "generic_reduce", met)
    ScanOps.apply_impl = _apply(ScanOps.apply_impl, "generic_scan", met)
    ReduceOps.generic_reduce = _reduce(ReduceOps.generic_reduce)
    ScanOps.generic_scan = _scan(ScanOps.generic_scan)
