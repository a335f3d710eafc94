"""What a candidate's forward is given, and what it returns, between values and data: tensors are stand-ins and ids."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.program.schema import decode_scalar
from rlkernel.evaluator.program.tensors import name_of
from rlkernel.evaluator.program.values import Pairs, TensorRef, Value
from rlkernel.evaluator.trace.kernels import bounded
from rlkernel.evaluator.trace.pretrained import decode_config
from rlkernel.evaluator.trace.recorder import Recorder, Untraceable, stand_in
from rlkernel.records import record_as, record_of
from rlkernel.types import FILE

NONE: Mapping[str, Any] = MappingProxyType({})


def decode_spec(value: Any, recorder: Recorder, ids: list[int], kinds: Mapping[str, Any] = NONE) -> Any:
    """An argument as the candidate sees it: tensors by specification become stand-ins, whose ids are collected. kinds: the
    reference's own classes by name, where it is the reference that sees it."""
    if isinstance(value, list):
        return [decode_spec(item, recorder, ids, kinds) for item in value]
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        spec = value["tensor"]
        tensor = stand_in(recorder, tuple(spec["shape"]), tuple(spec["stride"]), getattr(torch, spec["dtype"]))
        ids.append(recorder.ids.of(tensor))
        return tensor
    if "dict" in value:
        return {key: decode_spec(item, recorder, ids, kinds) for key, item in value["dict"]}
    if "tuple" in value:
        return tuple(decode_spec(item, recorder, ids, kinds) for item in value["tuple"])
    if "values" in value:
        return _decode_record(value, {key: decode_spec(item, recorder, ids, kinds) for key, item in value["values"]}, kinds)
    config = decode_config(value)
    return decode_scalar(value) if config is None else config


def _decode_record(spec: Mapping[str, Any], values: dict[str, Any], kinds: Mapping[str, Any]) -> Any:
    """A record or a named tuple of these values; of the class of its name, where that is known."""
    if "named" in spec:
        own = kinds.get(spec["named"])
        kind = own if isinstance(own, type) else namedtuple(spec["named"], list(values))
        return kind(**values)
    own = kinds.get(spec["record"])
    if isinstance(own, type) and own.__module__ == FILE:
        return record_as(own, values)
    return record_of(spec["record"], values)


def encode_output(value: Any, recorder: Recorder) -> Value:
    """What `forward` returned, with ids for tensors. Raises Untraceable for what a Program cannot return."""
    if isinstance(value, torch.Tensor):
        if type(value) not in (torch.Tensor, nn.Parameter):
            raise Untraceable(f"forward returns a {type(value).__name__}; return a plain tensor")
        if value.is_conj() or value.is_neg():
            raise Untraceable(
                "forward returns a view that is conjugated or negated by whoever reads it; return .resolve_conj().resolve_neg()"
            )
        return TensorRef(recorder.ids.of(value))
    if isinstance(value, (list, tuple)):
        return [encode_output(item, recorder) for item in value]
    if isinstance(value, dict):
        return Pairs(tuple((name_of(key), encode_output(item, recorder)) for key, item in value.items()))
    if isinstance(value, (int, float)):
        return bounded(recorder.numbers.known(value))
    if value is None or isinstance(value, str):
        return value
    raise Untraceable(f"forward returns a {type(value).__name__}; return tensors")
