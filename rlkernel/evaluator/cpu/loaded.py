"""Values that come from memory, which nobody knows while a launch is priced.

Then loads give zeros. A kernel whose work such a value decides would be priced without that work, so these values are marked, and
all that is computed from them. A mark becomes no number of Python: what asks for one is refused (`DecidedByMemory`).
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable
from typing import Any

import triton.language as tl
from triton.runtime.interpreter import BlockPointerHandle, TensorDescHandle, TensorHandle

from rlkernel.evaluator.cpu.latency import keep
from rlkernel.evaluator.judging.costs.operator_costs import NoCost


class DecidedByMemory(NoCost):
    """A kernel does more or less work, depending on a value in memory."""

    def __init__(self, where: str = "") -> None:
        Exception.__init__(
            self,
            f"{where}a value from memory decides how much the kernel does, which has no modelled cost: "
            "without a GPU, bound loops by arguments, shapes or whole numbers among the inputs, and mask what is beyond",
        )


def mark(value: Any) -> Any:
    """The same handle, tensor or structure of these, marked."""
    if isinstance(value, tl.tensor):
        mark(value.handle)
    elif isinstance(value, (list, tuple, tl.core.tuple)):
        for item in value:
            mark(item)
    elif isinstance(value, (TensorHandle, BlockPointerHandle, TensorDescHandle)):
        value.from_memory = True
    return value


def is_loaded(value: Any) -> bool:
    """Whether a handle, a tensor or a part of a structure is marked."""
    if isinstance(value, tl.tensor):
        return is_loaded(value.handle)
    if isinstance(value, (list, tuple, tl.core.tuple)):
        return any(is_loaded(item) for item in value)
    if isinstance(value, TensorHandle):
        return "from_memory" in vars(value)
    if isinstance(value, (BlockPointerHandle, TensorDescHandle)):
        return "from_memory" in vars(value) or any(is_loaded(part) for part in vars(value).values())
    return False


def know(value: Any) -> Any:
    """The same handle, which is marked, with the right value all the same: it comes from memory whose numbers are known."""
    value.known = True
    return value


def is_known(value: Any) -> bool:
    """Whether all that is marked in a handle, a tensor or a structure of these has the right value."""
    if isinstance(value, tl.tensor):
        return is_known(value.handle)
    if isinstance(value, (list, tuple, tl.core.tuple)):
        return all(is_known(item) for item in value)
    return not is_loaded(value) or (isinstance(value, TensorHandle) and "known" in vars(value))


def marked_copy(value: Any) -> Any:
    """A tensor, or the tensors of a tuple, marked, while other names of the same value stay as they are."""
    if isinstance(value, tuple):
        return tuple(marked_copy(item) for item in value)
    if isinstance(value, tl.tensor) and isinstance(value.handle, TensorHandle):
        return tl.tensor(mark(_copy(value.handle)), value.type)
    if isinstance(value, tl.tensor) and isinstance(value.handle, BlockPointerHandle):
        made = copy.copy(value.handle)
        made.offsets = [_copy(offset) for offset in made.offsets]
        return tl.tensor(mark(made), value.type)
    return mark(value)


def _copy(handle: Any) -> Any:
    return keep(TensorHandle(handle.data, handle.dtype), handle)


def _marking(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.dry:
            return method(self, *args, **kwargs)
        before = self.accesses
        made = method(self, *args, **kwargs)
        self.chain.deepen(name, args, kwargs, made)
        given = (*args, *kwargs.values())
        if self.accesses != before:
            return mark(made)
        if is_loaded(given):
            if not (isinstance(made, TensorHandle) and is_known(given)):
                return mark(made)
            return self.followed(name, method, args, kwargs, know(mark(made)))
        return self.followed(name, method, args, kwargs, made)

    return call


def marks_results(machine: type) -> type:
    """A class of machines (`dry`, `accesses`: reads of memory so far) whose methods mark what they make of marked values, hand
    other results to its `followed`, and tell its `chain` of all of them."""
    for name in dir(machine):
        if name.startswith("create_"):
            setattr(machine, name, _marking(name, getattr(machine, name)))
    return machine


def marks_addresses() -> None:
    """For good: the addresses that a block pointer or a tensor descriptor stands for are marked where a part of it is, or one of
    the places that are asked of it."""

    def marking(method: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[[Any, Any], tuple[Any, Any]]:
        @functools.wraps(method)
        def call(block: Any, given: Any) -> tuple[Any, Any]:
            addresses, mask = method(block, given)
            return mark(addresses) if is_loaded([block, given]) else addresses, mask

        return call

    for kind in (BlockPointerHandle, TensorDescHandle):
        kind.materialize_pointers = marking(kind.materialize_pointers)


def refuse_numbers(names: Iterable[str]) -> None:
    """For good: these methods of tensors, which give values of Python, refuse marked tensors."""

    def refusing(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def call(tensor: Any) -> Any:
            if is_loaded(tensor):
                raise DecidedByMemory
            return method(tensor)

        return call

    for name in names:
        setattr(tl.tensor, name, refusing(getattr(tl.tensor, name)))
