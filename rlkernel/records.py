"""Records: what a reference file hands its Model as a whole, such as a dataclass of sizes, a namespace or a named tuple."""

from __future__ import annotations

import enum
import keyword
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, make_dataclass
from types import SimpleNamespace
from typing import Any

from rlkernel.types import FILE


def is_named_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def is_record(value: Any) -> bool:
    """Whether a value is a dataclass, a namespace, or an object of a class that a reference file defines."""
    own = type(value).__module__ == FILE and not callable(value)
    plain = isinstance(value, (type, tuple, int, float, str))
    return not plain and (is_dataclass(value) or isinstance(value, (SimpleNamespace, Namespace)) or own)


def values_of(record: Any) -> dict[str, Any]:
    """What a record tells by name: what it holds, then what its class does, with properties as they are now, and no methods."""
    if isinstance(record, enum.Enum):
        return {"name": record.name, "value": record.value}
    held = [field.name for field in fields(record)] if is_dataclass(record) else []
    names = dict.fromkeys([*held, *getattr(record, "__dict__", {}), *dir(type(record))])
    told = {name: getattr(record, name) for name in names if not name.startswith("_") and not keyword.iskeyword(name)}
    return {name: value for name, value in told.items() if name in held or not callable(value)}


def record_of(kind: str, values: Mapping[str, Any]) -> Any:
    """A dataclass of these values.

    >>> record_of("Config", {"heads": 8, "scale": 0.5})
    Config(heads=8, scale=0.5)
    """
    return make_dataclass(kind, list(values))(**values)


def record_as(kind: type, values: Mapping[str, Any]) -> Any:
    """An object of a class of the file's own with these values, as far as they are held and not computed."""
    if issubclass(kind, enum.Enum):
        return kind[values["name"]]
    made = object.__new__(kind)
    for name, value in values.items():
        if not isinstance(getattr(kind, name, None), property):
            object.__setattr__(made, name, value)
    return made
