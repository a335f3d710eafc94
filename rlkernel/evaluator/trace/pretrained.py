"""Models of the Hugging Face hub, as KernelBench's level 4 has them: their configurations are arguments of `Model`.

A configuration is handed to a candidate as its model's type and its values. Where a trace calls `from_pretrained` with one, the
model is made of the configuration alone, without its files: weights have no data there, and both sides get the reference's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from rlkernel.evaluator.trace.recorder import Untraceable
from rlkernel.reference import is_config

KEY = "pretrained_config"
"""Under which an argument's specification has a configuration."""


def encode_config(config: Any) -> dict[str, Any]:
    """A configuration as data."""
    return {KEY: json.loads(config.to_json_string(use_diff=False)) | {"model_type": config.model_type}}


def decode_config(value: Any) -> Any:
    """The configuration of a specification; None for any other one."""
    if not (isinstance(value, dict) and KEY in value):
        return None
    from transformers import AutoConfig

    values = dict(value[KEY])
    return AutoConfig.for_model(values.pop("model_type"), **values)


@contextmanager
def made_of_configs(arguments: Any) -> Iterator[None]:
    """Inside, where a configuration is among the `arguments` or their specifications, it is what `AutoConfig.from_pretrained`
    gives, and models are made of the configurations that their `from_pretrained` is given."""
    known = _configs(arguments)
    with ExitStack() as stack:
        if known:
            from transformers import AutoConfig, PreTrainedModel
            from transformers.models.auto.auto_factory import _BaseAutoModelClass

            stack.enter_context(mock.patch.object(AutoConfig, "from_pretrained", lambda *args, **kwargs: known[0]))
            for kind in (PreTrainedModel, _BaseAutoModelClass, *_BaseAutoModelClass.__subclasses__()):
                stack.enter_context(mock.patch.object(kind, "from_pretrained", classmethod(_of_config)))
        yield


def _configs(value: Any) -> list[Any]:
    """The configurations among arguments or in their specifications."""
    if is_config(value):
        return [value]
    if isinstance(value, dict):
        config = decode_config(value)
        return [found for item in value.values() for found in _configs(item)] if config is None else [config]
    return [found for item in value for found in _configs(item)] if isinstance(value, (list, tuple)) else []


def _of_config(kind: Any, /, name: Any, *args: Any, config: Any = None, **kwargs: Any) -> Any:
    """What `from_pretrained` gives while it is traced."""
    del args, kwargs
    if config is None:
        raise Untraceable(f"from_pretrained({name!r}) without a configuration: pass config=")
    made = kind.from_config(config) if hasattr(kind, "from_config") else kind(config)
    return made.eval()  # as `from_pretrained` leaves it
