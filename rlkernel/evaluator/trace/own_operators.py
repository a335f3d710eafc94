"""Operators that candidates define with `torch.library`: a trace goes through the Python function behind each of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from rlkernel.evaluator.trace.recorder import Untraceable
from rlkernel.patched import patched

_OWN = ("aten", "prims", "prim", "quantized", "profiler")
"""Namespaces of operators that are torch's own."""
_IMPLEMENTED: dict[str, Any] = {}
"""Operator -> what a candidate has registered for it by `Library.impl`, for CUDA or for every device."""
_KEYS = ("CUDA", "CompositeExplicitAutograd", "CompositeImplicitAutograd", "")


def body_of(func: Any) -> Any:
    """The Python function behind an operator that was defined with `torch.library`; None of any other function. Raises
    Untraceable where there is none for CUDA."""
    if not isinstance(func, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return None
    name = func._qualified_op_name if isinstance(func, torch._ops.OpOverloadPacket) else func._schema.name
    if name.partition("::")[0] in _OWN:
        return None
    defined = torch._library.custom_ops.OPDEFS.get(name)
    written = {} if defined is None else defined._backend_fns
    body = written.get("cuda") or written.get(None) or _IMPLEMENTED.get(name)
    if body is None:
        raise Untraceable(f"operator {name} has no implementation in Python for CUDA")
    return body


@contextmanager
def own_operators() -> Iterator[None]:
    """Operators that are defined inside are known by their Python functions, and are gone afterwards."""
    made: list[Any] = []
    define, implement = torch.library.Library.__init__, torch.library.Library.impl

    def remember(self: Any, *args: Any, **kwargs: Any) -> None:
        define(self, *args, **kwargs)  # type: ignore[no-untyped-call]
        made.append(self)

    def implemented(self: Any, op_name: Any, fn: Any, dispatch_key: str = "", **kwargs: Any) -> Any:
        result = implement(self, op_name, fn, dispatch_key, **kwargs)  # type: ignore[no-untyped-call]
        if (dispatch_key or self.dispatch_key) in _KEYS:
            name = str(getattr(op_name, "_name", op_name)).partition(".")[0]
            _IMPLEMENTED[name if "::" in name else f"{self.ns}::{name}"] = fn
        return result

    with patched(torch.library.Library, __init__=remember, impl=implemented):
        try:
            yield
        finally:
            _IMPLEMENTED.clear()
            for library in made:
                library._destroy()
