"""Messages survive the wire, and what is not exactly a message is refused."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, replace
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlkernel.evaluator import wire
from rlkernel.evaluator.messages import children, codec, endings, forking, gpu, oracle
from rlkernel.evaluator.program.schema import MalformedProgram
from rlkernel.evaluator.program.variant import Kept, KeptConfigs, Traced
from rlkernel.evaluator.wire import BadMessage
from rlkernel.types import Status
from tests.evaluator.messages.drawn import COMPILED, PROGRAM, of

MESSAGES = {
    kind.__name__: kind
    for module in (children, endings, forking, gpu, oracle)
    for kind in vars(module).values()
    if isinstance(kind, type) and kind.__module__ == module.__name__
}
UNTRUSTED = (children.Traces, children.Binaries, children.Ran, endings.Failed)
"""What a child says that has seen a candidate."""
WITHOUT_CLOCK = settings(max_examples=20, suppress_health_check=list(HealthCheck))


def over_the_wire(message: Any) -> dict[str, Any]:
    packed = codec.pack(message)
    size, _ = wire.sizes(packed[: wire.PREFIX.size])
    return wire.parse(packed[wire.PREFIX.size :][:size])


def test_there_are_messages_of_every_border() -> None:
    assert {"TraceRequest", "Ran", "Failed", "Fork", "Judged", "Brief"} <= MESSAGES.keys()


@pytest.mark.parametrize("name", MESSAGES)
def test_every_message_survives_a_round_trip(name: str) -> None:
    @WITHOUT_CLOCK
    @given(of(MESSAGES[name]))
    def check(message: Any) -> None:
        assert codec.unpack(over_the_wire(message), endings.Failed, MESSAGES[name]) == message

    check()


ONE = wire.TensorSpan(0, 8, (2,), (1,), "float32")
FULL: dict[str, Any] = {
    "Traces": children.Traces((Traced(PROGRAM, PROGRAM),), Kept((KeptConfigs(0, 3, (0, 2)),))),
    "Binaries": children.Binaries({"1": {0: COMPILED}}, {COMPILED.key: wire.Span(0, 4)}),
    "Ran": children.Ran(
        (children.RoundOutputs({"tensor": 0}, (ONE,), (False,), (False,), (ONE,), {"w": ONE}),),
        children.Priced(
            (children.StepTime(1, 3.5, function=0), children.StepTime(0, 1.5, op="aten.relu.default")), False, {0: 9},
            (children.Extent(0, 1, 2, 2),), efforts={0: (8.0, 2.0, 2.0, 4.0)},
        ),
        {0: True}, (children.Extent(0, 1, 2, 2),),
    ),
    "Prices": children.Prices({1: (2, 0)}),
    "Failed": endings.Failed(Status.CRASH, "why"),
}  # fmt: skip
"""One of each message that is untrusted, with something in every field."""
LEAVES = {"structure", "program", "other", "kernels", "0"}
"""Fields whose inside is not looked at here: JSON of any shape, Programs (`test_schema`), facts of binaries (`test_compiler`)."""
FREE = {"detail", "dtype", "op"}
"""Fields that are texts of any kind."""
SPANS = {"at", "nbytes", "shape", "stride"}
"""Fields whose numbers are checked by who reads the body: `wire.raw`, `wire.tensor`."""
TABLES = {"kernels", "1", "cubins", "live", "state", "orders", "idle", "efforts"}
"""Fields that are tables, which may be empty and whose keys are data."""
Place = tuple[str | int, ...]


def places(value: Any, at: Place = ()) -> list[Place]:
    """Every place in a header."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [at] if at else []
    for key, one in inner:
        leaf = key in LEAVES and not isinstance(one, bool)
        found += [(*at, key)] if leaf else places(one, (*at, key))
    return found


def parent_of(header: Any, place: Place) -> Any:
    for key in place[:-1]:
        header = header[key]
    return header


def fits(new: Any, place: Place) -> bool:
    """Whether `new` may honestly stand at `place`."""
    last = place[-1]
    if new is None or isinstance(new, bool):
        return new is None and last in {"other", "priced"}
    if isinstance(new, list):
        lists = {"rounds", "rows", "short", "tensors", "overlapping", "lent", "inputs", "shape", "stride", "traces"}
        lists |= {"usual", "flipped", "kept", "repeated"}
        return not new and last in lists
    if isinstance(new, dict):
        return not new and last in TABLES
    if isinstance(new, str):
        return last in FREE
    if isinstance(new, int) and set(place) & SPANS:
        return last not in {"shape", "stride"}
    most = {"us": 1e15} | dict.fromkeys(("operations", "of_products", "effort"), 1e24)
    return bool(0 <= new <= (1e24 if "efforts" in place else most.get(last, -1.0)))


WRONG = ("?? ??", -1, 10**30, 1.5, float("nan"), [], {}, [[]], {"x": 1}, None)
CASES = {
    f"{kind.__name__} {' '.join(map(str, place))}": (kind, place)
    for kind in UNTRUSTED
    for place in places(over_the_wire(FULL[kind.__name__]))
    if place[-1] != "structure"
}


def refused(kind: Any, header: dict[str, Any]) -> bool:
    try:
        codec.unpack(json.loads(json.dumps(header)), kind)
    except (BadMessage, MalformedProgram):
        return True
    return False


def test_the_mutated_fields_are_many() -> None:
    assert len(CASES) > 50
    assert not any(refused(kind, over_the_wire(FULL[kind.__name__])) for kind in UNTRUSTED)


@pytest.mark.parametrize("name", CASES)
def test_a_field_that_is_wrong_is_refused(name: str) -> None:
    kind, place = CASES[name]
    honest = over_the_wire(FULL[kind.__name__])
    old, tried = parent_of(honest, place)[place[-1]], 0
    for new in (*WRONG, *((True,) if not isinstance(old, bool) else ())):
        if (type(new) is type(old) and new == old) or fits(new, place):
            continue
        header = copy.deepcopy(honest)
        parent_of(header, place)[place[-1]] = new
        assert refused(kind, header), new
        tried += 1
    assert tried >= 6


@pytest.mark.parametrize("name", CASES)
def test_a_missing_and_a_surplus_field_are_refused(name: str) -> None:
    kind, place = CASES[name]
    header = over_the_wire(FULL[kind.__name__])
    parent = parent_of(header, place)
    if isinstance(parent, list) or (len(place) > 1 and place[-2] in TABLES):
        return  # an element of a list or a table, not a field
    value = parent.pop(place[-1])
    assert refused(kind, header)
    parent[place[-1]] = value
    assert not refused(kind, header)
    parent["surplus"] = value
    assert refused(kind, header)


@pytest.mark.parametrize("key", ["-1", "01", "1.0", "x", "", "4096", "٣", "99999999999"])
def test_a_key_that_is_no_step_is_refused(key: str) -> None:
    header = over_the_wire(FULL["Ran"])
    header["choices"] = {key: 0}
    assert refused(children.Ran, header)


@given(st.dictionaries(st.sampled_from(["message", "rounds", "rows", "status", "detail"]), st.from_type(type(None)) | st.text()))
@WITHOUT_CLOCK
def test_junk_is_refused(header: dict[str, Any]) -> None:
    assert refused(children.Ran, header)


def test_a_message_of_another_kind_is_refused_by_name() -> None:
    with pytest.raises(BadMessage, match=r"^something else than Ran or Failed$"):
        codec.unpack(over_the_wire(forking.Kill(1)), children.Ran, endings.Failed)


def test_what_is_wrong_is_told_with_its_place() -> None:
    header = over_the_wire(FULL["Ran"])
    header["priced"]["rows"][1]["us"] = -1.0
    with pytest.raises(BadMessage, match=r"^no Ran: priced: no Priced: rows: no StepTime: us: out of bounds$"):
        codec.unpack(header, children.Ran)


def test_a_step_is_a_launch_or_an_operator() -> None:
    header = over_the_wire(FULL["Ran"])
    header["priced"]["rows"][0]["op"] = "aten.relu"
    with pytest.raises(BadMessage, match="a step is either a launch or an operator"):
        codec.unpack(header, children.Ran)


def test_facts_of_many_launches_are_sent_once() -> None:
    other = replace(COMPILED, registers=40)
    table = {str(step): {0: COMPILED} | ({1: other} if step % 2 else {}) for step in range(1000)}
    header = over_the_wire(children.Binaries(table, {}))
    assert len(header["kernels"]["items"]) == 2
    assert len(json.dumps(header)) < 40_000  # and not 400,000
    assert codec.unpack(header, children.Binaries).kernels == table


@dataclass(frozen=True)
class Small:
    number: Annotated[int, codec.Between(1, 3)]
    text: Annotated[str, codec.Between(1, 3)]


@dataclass(frozen=True)
class Held:
    values: set[int]


def test_bounds_are_a_numbers_value_and_a_texts_length() -> None:
    for number, text, fine in (
        (1, "abc", True),
        (3, "a", True),
        (0, "a", False),
        (4, "a", False),
        (1, "", False),
        (1, "abcd", False),
    ):
        assert refused(Small, {"message": "Small", "number": number, "text": text}) is not fine


def test_a_message_may_not_hold_what_json_has_no_form_for() -> None:
    with pytest.raises(TypeError, match="a message cannot hold a set"):
        codec.form_of(Held)
