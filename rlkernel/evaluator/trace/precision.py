"""Dtypes that depend on a setting of the process: `torch.autocast` and the default dtype. A Program names what they amount to."""

from __future__ import annotations

from typing import Any

import torch

from rlkernel.autocast import cast, wanted


class DependsOnDefault(Exception):
    """An operator's result has the default dtype, which host code has changed and a Program cannot name."""


def cast_as_autocast_would(
    recorder: Any, lower: torch.dtype | None, func: Any, args: Any, kwargs: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The arguments as `torch.autocast("cuda")` with the dtype `lower` hands them on; the casts are recorded."""

    def recorded(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        with recorder:
            made: torch.Tensor = torch.ops.aten._to_copy.default(tensor, dtype=dtype)
        return made

    return cast(wanted(func._schema.name.partition("::")[2], lower), args, kwargs, recorded)


def cast_to_default(recorder: Any, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The arguments of a pointwise operator that makes floats of integers, as the default dtype would have them, where host code
    has changed it; the casts are recorded. Example: `torch.arange(3) / 2` after `set_default_dtype(torch.float64)`."""
    default = torch.get_default_dtype()
    if default == torch.float32:
        return args
    tensors = [value for value in args if isinstance(value, torch.Tensor)]
    if not tensors or func._schema.is_mutable or torch.Tag.pointwise not in func.tags:
        return args
    if any(tensor.is_floating_point() or tensor.is_complex() for tensor in tensors):
        return args
    result = func(*args, **kwargs)
    if not (isinstance(result, torch.Tensor) and result.is_floating_point() and kwargs.get("dtype") is None):
        return args
    with recorder:
        return tuple(
            torch.ops.aten._to_copy.default(value, dtype=default) if isinstance(value, torch.Tensor) else value for value in args
        )


def name_dtype(func: Any, args: Any, kwargs: dict[str, Any]) -> None:
    """Write the default dtype into a call that makes a tensor of it, if it is not torch's own. Raises DependsOnDefault."""
    default = torch.get_default_dtype()
    if default == torch.float32:
        return
    tensors = [value for value in args if isinstance(value, torch.Tensor)]
    if any(a.name == "dtype" for a in func._schema.arguments) and not tensors:
        if kwargs.get("dtype") is None:
            kwargs["dtype"] = func(*args, **kwargs).dtype
    elif (
        tensors
        and kwargs.get("dtype") is None
        and not any(tensor.is_floating_point() or tensor.is_complex() for tensor in tensors)
    ):
        result = func(*args, **kwargs) if not func._schema.is_mutable else None
        if isinstance(result, torch.Tensor) and result.is_floating_point():
            raise DependsOnDefault(f"{func} gives the default dtype, which was set to {default}; name a dtype")
