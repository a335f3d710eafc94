"""What is known of an operator whatever it is given: asked of torch once, and not in each of thousands of steps."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch

_TENSOR = torch._C.TensorType.get()


@dataclass(frozen=True, slots=True)
class Overload:
    """One overload of an operator."""

    name: str
    """As a Program says it, e.g. `aten.add.Tensor`."""
    composite: bool
    """Whether it is made of others in torch itself."""
    names_device: bool
    """Whether it takes a device."""
    makes: bool
    """Whether it writes nowhere, and all that it returns are tensors in memory of their own."""
    changes: bool
    """Whether it writes to its first argument alone, and returns that."""


@functools.cache
def about(func: Any) -> Overload:
    """What is known of an overload."""
    schema = func._schema
    aliased = [argument.alias_info is not None for argument in schema.arguments]
    written = [argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments]
    returned = [one.alias_info is not None for one in schema.returns]
    composite = torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")
    tensors = bool(schema.returns) and all(one.type.isSubtypeOf(_TENSOR) for one in schema.returns)
    plain = tensors and not composite and not any(argument.name == "generator" for argument in schema.arguments)
    return Overload(
        str(func),
        bool(composite),
        any(argument.name == "device" for argument in schema.arguments),
        plain and not any(aliased) and not any(returned),
        plain and len(returned) == 1 and returned[0] and written[:1] == [True] and not any(written[1:]),
    )
