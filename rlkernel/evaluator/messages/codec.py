"""Message to header and back, once for all of them, driven by the fields' types. What arrives is checked.

A header is {"message": name of the class, field: value, ...}. A message is refused (`wire.BadMessage`) if a field is missing,
surplus, of another type, or outside the bounds that its annotation names:

    step: Annotated[int, Between(0, 4095)]      a number        name: Annotated[str, Between(1, 200)]      a text's length

A table of tables, most of whose items are one and the same, has each of them once: Annotated[dict[str, dict[int, Facts]], ONCE].

Known types: bool, int, float, str, enums of texts, dataclasses, tuples, dicts with keys that are texts or numbers, `X | None`,
`Program`, `Compiled`, and `Any` for JSON that is passed on as it is.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints, overload

from rlkernel.evaluator import wire
from rlkernel.evaluator.compile.binaries import Compiled, compiled_from_json
from rlkernel.evaluator.program import encoding
from rlkernel.evaluator.program.schema import Program
from rlkernel.evaluator.wire import BadMessage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Between:
    """The least and the largest value of a number, or length of a text."""

    low: float
    high: float


ONCE = "once"
"""Marks a table of tables in which an item that stands at many places is sent once."""


@dataclass(frozen=True, slots=True)
class Form:
    """How values of one type stand in JSON. `decode` raises BadMessage."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def pack(message: Any, body: wire.Body | None = None) -> bytes:
    """A message for the wire, with the body that its spans refer to."""
    return wire.pack(to_header(message), body)


def head(message: Any, body: int) -> bytes:
    """A message for the wire up to its body, which has so many bytes and is sent as it is, without a copy."""
    return wire.head(to_header(message), body)


def to_header(message: Any) -> dict[str, Any]:
    """A message as JSON that `unpack` reads."""
    kind: Any = type(message)
    return {"message": kind.__name__, **form_of(kind).encode(message)}


@overload
def unpack(header: Mapping[str, Any], kind: type[T], /) -> T: ...


@overload
def unpack(header: Mapping[str, Any], /, *kinds: type[Any]) -> Any: ...


def unpack(header: Mapping[str, Any], /, *kinds: Any) -> Any:
    """The message, which is one of `kinds`. Raises BadMessage, or MalformedProgram if there is a bad Program in it."""
    for kind in kinds:
        if header.get("message") == kind.__name__:
            return form_of(kind).decode({name: value for name, value in header.items() if name != "message"})
    raise BadMessage(f"something else than {' or '.join(kind.__name__ for kind in kinds)}")


@functools.cache
def form_of(kind: Any) -> Form:
    """The form of a type, made once. Raises TypeError for one that no message may hold."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _once(arguments[0]) if arguments[1] == ONCE else _bounded(form_of(arguments[0]), arguments[1])
    if origin in (Union, types.UnionType) and len(arguments) == 2 and type(None) in arguments:
        return _optional(form_of(next(argument for argument in arguments if argument is not type(None))))
    if origin is tuple:
        return _tuple(form_of(arguments[0])) if arguments[-1] is ... else _row(tuple(form_of(one) for one in arguments))
    if origin in (dict, Mapping):
        return _dict(form_of(arguments[0]), form_of(arguments[1]), numbers=_is_number(arguments[0]))
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _enum(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        return _dataclass(kind)
    raise TypeError(f"a message cannot hold a {kind}")


def _same(value: Any) -> Any:
    return value


def _exactly(kind: type, name: str) -> Form:
    def decode(value: Any) -> Any:
        if type(value) is not kind:
            raise BadMessage(f"not {name}")
        return value

    return Form(_same, decode)


def _float(value: Any) -> float:
    if type(value) not in (int, float):
        raise BadMessage("not a number")
    try:
        return float(value)
    except OverflowError:
        raise BadMessage("not a number") from None


_PLAIN: dict[Any, Form] = {
    Any: Form(_same, _same),
    bool: _exactly(bool, "true or false"),
    int: _exactly(int, "a whole number"),
    str: _exactly(str, "a text"),
    float: Form(_same, _float),
    Program: Form(encoding.to_json, encoding.from_json),
    Compiled: Form(asdict, compiled_from_json),
}


def _is_number(key: Any) -> bool:
    return key is int or (get_origin(key) is Annotated and get_args(key)[0] is int)


def _bounded(form: Form, bounds: Between) -> Form:
    def decode(value: Any) -> Any:
        found = form.decode(value)
        if not bounds.low <= (len(found) if isinstance(found, str) else found) <= bounds.high:  # NaN is in no bounds
            raise BadMessage("out of bounds")
        return found

    return Form(form.encode, decode)


def _optional(form: Form) -> Form:
    return Form(
        lambda value: None if value is None else form.encode(value), lambda value: None if value is None else form.decode(value)
    )


def _tuple(form: Form) -> Form:
    return Form(
        lambda values: [form.encode(value) for value in values],
        lambda values: tuple(form.decode(value) for value in _list(values)),
    )


def _row(forms: Sequence[Form]) -> Form:
    def decode(values: Any) -> tuple[Any, ...]:
        if len(_list(values)) != len(forms):
            raise BadMessage(f"not a list of {len(forms)}")
        return tuple(form.decode(value) for form, value in zip(forms, values, strict=True))

    return Form(lambda values: [form.encode(value) for form, value in zip(forms, values, strict=True)], decode)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise BadMessage("not a list")
    return value


def _dict(key: Form, item: Form, *, numbers: bool) -> Form:
    """`numbers`: keys are whole numbers, which JSON has as texts."""

    def read(name: str) -> Any:
        if not numbers:
            return key.decode(name)
        number = wire.whole_number(name, 9)
        if number is None:
            raise BadMessage("not a whole number as a key")
        return key.decode(number)

    def decode(value: Any) -> dict[Any, Any]:
        if not isinstance(value, dict):
            raise BadMessage("not an object")
        return {read(name): item.decode(one) for name, one in value.items()}

    return Form(lambda value: {str(name): item.encode(one) for name, one in value.items()}, decode)


def _once(kind: Any) -> Form:
    """A table of tables of type `kind` as its distinct items, told apart as objects, and the places where these stand."""
    keys, row = get_args(kind)
    numbers, item = get_args(row)
    of_row = _dict(form_of(numbers), form_of(int), numbers=_is_number(numbers))
    items, places = _tuple(form_of(item)), _dict(form_of(keys), of_row, numbers=_is_number(keys))

    def encode(table: Mapping[Any, Mapping[Any, Any]]) -> Any:
        distinct = {id(one): one for found in table.values() for one in found.values()}
        number = {place: count for count, place in enumerate(distinct)}
        where = {name: {at: number[id(one)] for at, one in found.items()} for name, found in table.items()}
        return {"items": items.encode(distinct.values()), "places": places.encode(where)}

    def decode(value: Any) -> Any:
        if not isinstance(value, dict) or value.keys() != {"items", "places"}:
            raise BadMessage("not items and their places")
        found, where = items.decode(value["items"]), places.decode(value["places"])
        if any(not 0 <= number < len(found) for row in where.values() for number in row.values()):
            raise BadMessage("an item that there is not")
        return {name: {at: found[number] for at, number in row.items()} for name, row in where.items()}

    return Form(encode, decode)


def _enum(kind: type[StrEnum]) -> Form:
    def decode(value: Any) -> StrEnum:
        try:
            return kind(value)
        except ValueError:
            raise BadMessage(f"no {kind.__name__}") from None

    return Form(str, decode)


def _dataclass(kind: type) -> Form:
    """Exactly the fields of `kind`, defaults included; its constructor may refuse them with a ValueError."""
    hints = get_type_hints(kind, include_extras=True)
    forms = {field.name: form_of(hints[field.name]) for field in fields(kind)}

    def encode(message: Any) -> dict[str, Any]:
        return {name: form.encode(getattr(message, name)) for name, form in forms.items()}

    def decode(data: Any) -> Any:
        if not isinstance(data, dict) or data.keys() != forms.keys():
            raise BadMessage(f"no {kind.__name__}: other fields than {', '.join(forms)}")
        found = {}
        for name, form in forms.items():
            try:
                found[name] = form.decode(data[name])
            except BadMessage as error:
                raise BadMessage(f"no {kind.__name__}: {name}: {error}") from None
        try:
            return kind(**found)
        except ValueError as error:
            raise BadMessage(f"no {kind.__name__}: {error}") from None

    return Form(encode, decode)
