"""Headers are read whole or refused, and what reading one would cost is known before."""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import anyio.to_thread
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlkernel.evaluator import wire
from rlkernel.evaluator.processes.child import PARSED_HERE, Child

NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(alphabet='[]{},"\\:a\u2028', max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='[]{},"\\', max_size=4), inner, max_size=4),
    max_leaves=20,
)


def values_of(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + sum(values_of(item) for item in inner)


def depth_of(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + max(map(depth_of, inner), default=0)


@given(st.dictionaries(st.text(max_size=3), NESTED, max_size=4))
def test_headers_come_back_and_their_extent_is_bounded_from_above(header: dict[str, Any]) -> None:
    text = json.dumps(header).encode()
    assert wire.parse(text) == header
    values, depth = wire._extent(text)
    assert values >= values_of(header)
    assert depth_of(header) <= depth <= depth_of(header) + 1
    assert values <= 2 * values_of(header)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"a": [' + b",".join([b"[]"] * wire.MAX_VALUES) + b"]}", "of more than 2097152 values"),
        (b'{"a": ' + b"[" * 64 + b"]" * 64 + b"}", "nested deeper than 64"),
        (b'{"a": ' + b"[" * 200_000, "nested deeper than 64"),
        (b"[1]", "not an object"),
        (b"{", "not JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"a": "\xff"}', "not JSON"),
    ],
)
def test_headers_that_are_refused(text: bytes, message: str) -> None:
    with pytest.raises(wire.BadMessage, match=message):
        wire.parse(text)


def test_a_child_may_be_asked_with_more_than_it_may_answer_with() -> None:
    """A recurrent layer of 55,000 steps filled an answer nearly, and what was compiled for each launch came beside it."""
    count = wire.MAX_VALUES - 2  # an empty list counts 2
    message = wire.pack({"a": [[]] * count})
    with pytest.raises(wire.BadMessage, match="of more than 2097152 values"):
        wire.parse(message[wire.PREFIX.size :])
    mine, theirs = socket.socketpair()
    with mine, theirs, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(wire.receive, theirs)
        mine.sendall(message)
        received = asked.result(60)
    assert received is not None
    assert len(received[0]["a"]) == count


def test_who_sends_knows_whether_it_will_be_read() -> None:
    """Each empty list counts 2: a bracket and a comma."""
    assert wire.fits(wire.pack({"a": [[]] * (wire.MAX_VALUES // 2 - 2)}))
    assert not wire.fits(wire.pack({"a": [[]] * (wire.MAX_VALUES // 2)}))
    assert not wire.fits(wire.pack({"a": "x" * wire.MAX_HEADER}))


def test_lazy_signs_are_carried_out() -> None:
    body = wire.Body()
    spans = [body.add(torch._neg_view(torch.tensor([1.0, -2.0]))), body.add(torch.tensor([1 + 2j]).conj())]
    raw = b"".join(body.parts)
    assert [wire.tensor(span, raw).tolist() for span in spans] == [[-1.0, 2.0], [1 - 2j]]


def test_brackets_in_strings_are_no_nesting() -> None:
    header = {"source": '["{' * 1000 + "\\" * 7 + '"', "deep": [[[1]]]}
    assert wire.parse(json.dumps(header).encode()) == header


@pytest.mark.anyio
@pytest.mark.parametrize(("size", "beside"), [(10, False), (PARSED_HERE, True)])
async def test_long_headers_are_parsed_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch, size: int, beside: bool) -> None:
    seen: list[int] = []
    parse = wire.parse

    def watched(text: bytes) -> dict[str, Any]:
        seen.append(threading.get_ident())
        return parse(text)

    monkeypatch.setattr(wire, "parse", watched)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, wire.send, theirs, wire.pack({"text": "x" * size}))
            header, body = await Child(1, ours).ask(b"")
    assert (len(header["text"]), body) == (size, b"")
    assert [ident != threading.get_ident() for ident in seen] == [beside]


@pytest.mark.parametrize("dtype", ["quint8", "qint32", "quint4x2", "no_type", "nn"])
def test_a_tensor_of_a_type_that_no_message_holds_is_refused(dtype: str) -> None:
    """Quantised tensors would end the process that reads them."""
    with pytest.raises(wire.BadMessage, match="a bad tensor"):
        wire.tensor(wire.TensorSpan(0, 128, (8, 16), (1, 8), dtype), bytes(128))


@pytest.mark.parametrize(
    "view", [lambda x: x[::2, 1::3], lambda x: x[:, :1].expand(8, 12), lambda x: x.reshape(-1).unfold(0, 8, 2)]
)
def test_tensors_lie_as_they_did_whether_or_not_their_elements_share_memory(view: Any) -> None:
    tensor, body = view(torch.arange(96.0).reshape(8, 12)), wire.Body()
    span = body.add(tensor)
    found = wire.tensor(span, b"".join(body.parts))
    assert found.stride() == tensor.stride() and torch.equal(found, tensor)
