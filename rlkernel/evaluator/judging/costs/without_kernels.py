"""A reference that launches Triton kernels is refused in one line: its operators tell what it costs, and how exact it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from rlkernel.errors import BrokenReference


@contextmanager
def without_kernels(name: str) -> Iterator[None]:
    """Inside, a launch of the reference `name` raises BrokenReference."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        kernel = getattr(getattr(self, "base_fn", self), "__name__", "one")
        raise BrokenReference(f"{name}: forward launches a Triton kernel, {kernel}; write a reference with torch's operators")

    with ExitStack() as stack:
        for kind in (JITFunction, Autotuner):
            stack.enter_context(mock.patch.object(kind, "run", refuse))
        yield
