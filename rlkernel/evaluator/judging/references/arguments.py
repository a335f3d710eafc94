"""The arguments of a problem as data: tensors by shape, stride and dtype. `trace.passing.decode_spec` makes tensors of them."""

from __future__ import annotations

from typing import Any

import torch

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.program.schema import encode_scalar
from rlkernel.evaluator.program.variant import Variant
from rlkernel.evaluator.trace.pretrained import encode_config
from rlkernel.records import is_named_tuple, is_record, values_of
from rlkernel.reference import Reference, is_config


def spec(value: Any) -> Any:
    """An argument as data: tensors by shape, stride and dtype. Raises BrokenReference for what a candidate cannot be given."""
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunction():
            return {
                "tensor": {
                    "shape": list(value.shape),
                    "stride": list(value.stride()),
                    "dtype": str(value.dtype).removeprefix("torch."),
                }
            }
    if is_named_tuple(value):
        return {"named": type(value).__name__, "values": [[name, spec(item)] for name, item in value._asdict().items()]}
    if isinstance(value, tuple):
        return {"tuple": [spec(item) for item in value]}
    if isinstance(value, list):
        return [spec(item) for item in value]
    if isinstance(value, dict):
        return {"dict": [[key if isinstance(key, int) else str(key), spec(item)] for key, item in value.items()]}
    if is_config(value):
        return encode_config(value)
    if is_record(value):
        return {"record": type(value).__name__, "values": [[name, spec(item)] for name, item in values_of(value).items()]}
    try:
        return encode_scalar(value)
    except TypeError:
        raise BrokenReference(
            f"an argument is a {type(value).__name__}: use tensors, numbers, strings and lists of these"
        ) from None


def arguments(reference: Reference, seed: int) -> Variant:
    """What a problem's functions give under a seed, for both `__init__` and `forward`. Raises BrokenReference."""
    args, kwargs = reference.init_inputs(seed)
    return Variant([spec(args), spec(kwargs)], spec(reference.inputs(seed)))
