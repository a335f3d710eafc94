"""A launch's arguments and grid, bound as `JITFunction.run` binds them, by Triton's own code up to where it would compile."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from triton.runtime.jit import JITFunction, MockTensor

from rlkernel.evaluator.trace.host_numbers import UnknownValue, has_numbers

MAX_GRID = 2**31 - 1
MAX_INT = 2**63 - 1
MAX_HIGHER = 2**16 - 1
"""The most programs along the second and along the third axis of a grid that the driver launches."""
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Options of a launch that a Program keeps."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What Triton would launch."""

    arguments: dict[str, Any]
    """Parameter -> value as it was passed, defaults included, in the kernel's order."""
    options: dict[str, Any]
    """What was passed by keyword and is no parameter: num_warps and the like."""


Sources = tuple[tuple[str, int, Any], ...]
"""Of each parameter: its name, the place of what it takes among what is passed by place, and its default; place -1: what is
passed by its name, -2: the default."""


def bind(jit: JITFunction[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
    """Raises what `JITFunction.run` raises for wrong arguments: TypeError, KeyError, AssertionError, ValueError."""
    names = [parameter.name for parameter in jit.params]
    binder = jit.device_caches[0][-1]  # made once
    kinds = _kinds(names, args, kwargs)
    accepted: dict[Any, Sources] = jit.__dict__.setdefault("accepted", {})
    sources = None if kinds is None else accepted.get((binder, kinds))
    if sources is None:
        arguments = _bound_by_triton(jit, args, kwargs)
        if kinds is not None:
            accepted[binder, kinds] = tuple(
                (name, place, None) if place < len(args) else (name, -1, None) if name in kwargs else (name, -2, arguments[name])
                for place, name in enumerate(names)
            )
    else:
        arguments = {
            name: args[place] if place >= 0 else kwargs[name] if place == -1 else default for name, place, default in sources
        }
    return Bound(arguments, {k: v for k, v in kwargs.items() if k not in arguments})


_PLAIN = frozenset({float, bool, str, type(None)})


def _kinds(names: Sequence[str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    """By which Triton accepts or refuses arguments, of kinds of which values mean nothing to it; None for others."""
    found: list[Any] = [len(args)]
    with torch._C.DisableTorchFunction():
        for value in args:
            kind = _kind(value)
            if kind is None:
                return None
            found.append(kind)
        for name, value in kwargs.items():
            kind, option = _kind(value), name not in names
            if kind is None or (option and type(kind) is not type):
                return None
            found += (name, kind, value) if option else (name, kind)
    return tuple(found)


def _kind(value: Any) -> Any:
    kind = type(value)
    if kind is int:
        return int if -MAX_INT - 1 <= value <= MAX_INT else None
    if kind in _PLAIN:
        return kind
    return value.dtype if kind is torch.Tensor or kind is torch.nn.Parameter else None


def _bound_by_triton(jit: JITFunction[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Parameter -> value, by Triton's own code."""

    def without_data(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return _Pointer(value.dtype, value)
        return _alike(value, [without_data(item) for item in value]) if isinstance(value, tuple) else value

    mocked = {key: without_data(value) for key, value in kwargs.items()}
    mocked["debug"] = bool(kwargs.get("debug", jit.debug))
    backend, binder = jit.device_caches[0][-2:]
    try:
        bound, specialization, options = binder(*[without_data(value) for value in args], **mocked)
    except TypeError as error:  # Triton's binder is a function that it has made, with a name of its own
        raise TypeError(str(error).replace("dynamic_func()", f"{jit.fn.__name__}()")) from None
    hash(tuple(part for part in specialization if not has_numbers(part)))  # Triton looks the kernel up by it
    values = repr([mocked.get(key) for key in OPTIONS])
    accepted: set[tuple[frozenset[str], str]] = jit.__dict__.setdefault("accepted_keywords", set())
    if (frozenset(mocked), values) not in accepted:  # names are checked, and the values of these options, so once is enough
        jit._pack_args(backend, mocked, bound, specialization, options)
        accepted.add((frozenset(mocked), values))
    return {parameter.name: _with_data(bound[parameter.name]) for parameter in jit.params}


class _Pointer(MockTensor):  # type: ignore[misc]
    """A tensor without an address, as `JITFunction.warmup` takes them."""

    def __init__(self, dtype: torch.dtype, tensor: torch.Tensor) -> None:
        super().__init__(dtype)
        self.tensor = tensor


def _with_data(value: Any) -> Any:
    if isinstance(value, _Pointer):
        return value.tensor
    return _alike(value, [_with_data(item) for item in value]) if isinstance(value, tuple) else value


def _alike(value: tuple[Any, ...], items: list[Any]) -> tuple[Any, ...]:
    """A tuple of other items, with the names that the items of `value` have, if they have names."""
    made: tuple[Any, ...] = tuple.__new__(type(value) if fields_of(value) else tuple, items)  # without the candidate's own code
    return made


def fields_of(value: tuple[Any, ...]) -> tuple[str, ...]:
    """The names of a tuple's items; empty where they have none."""
    found = tuple(getattr(value, "_fields", ()))
    return found if len(found) == len(value) and all(type(name) is str for name in found) else ()


def grid_of(grid: Any, arguments: dict[str, Any]) -> tuple[int, int, int]:
    """The grid as the launcher takes it: what stands beyond the third entry is ignored. Raises as the launcher does."""
    if grid is None:
        raise AssertionError("a launch needs a grid: kernel[grid](...)")
    if callable(grid):
        grid = grid(arguments)
    if has_numbers(grid):
        raise UnknownValue("the grid depends on a parameter's value; let the kernel decide what its programs do")
    count = len(grid)
    sizes = [operator.index(grid[axis]) if axis == 0 or count > axis else 1 for axis in range(3)]
    if any(not -MAX_GRID - 1 <= size <= MAX_GRID for size in sizes):
        raise OverflowError("signed integer is greater than maximum")
    product = (
        (sizes[0] * sizes[1] * sizes[2] + MAX_GRID + 1) % (2 * MAX_GRID + 2) - MAX_GRID - 1
    )  # the launcher's is 32 bits wide
    if product <= 0:
        return 0, 1, 1
    if min(sizes) < 1 or max(sizes[1:]) > MAX_HIGHER:
        raise RuntimeError("Triton Error [CUDA]: invalid argument")
    return sizes[0], sizes[1], sizes[2]
