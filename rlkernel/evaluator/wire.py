"""Messages between processes: a JSON header and raw tensor bytes, length-prefixed. Nothing is ever unpickled.

    8 bytes header length | 8 bytes body length | header (JSON) | body (tensors' bytes, one after the other)

A header says of a tensor, or of plain bytes, where they lie in the body: `TensorSpan`, `Span`. What stands in the headers is the
affair of `rlkernel.evaluator.messages`.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rlkernel.evaluator.program.tensors import overwrite

PREFIX = struct.Struct("<QQ")
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32, torch.int64,
        torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex32, torch.complex64, torch.complex128,
        torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz,
        torch.float8_e8m0fnu,
    )
}  # fmt: skip
"""The types of tensors that a message may hold. Quantised ones end the process that only looks at them."""
MAX_HEADER = 24 << 20
MAX_BODY = 1 << 30
MAX_VALUES = 1 << 21
"""Values in a header that a child answers with: of a Program with as many steps as it may have, and a small one. Read, they
take up to 130 MB."""
MOST_ASKED = 2 * MAX_VALUES
"""Values in a header that a child is asked with: beside the Programs of an answer, it tells what was compiled for each launch."""
MAX_DEPTH = 64
"""Nesting of a header; what is deeper could be read but not be written again."""


class BadMessage(Exception):
    """A peer sent something that is not a message."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where plain bytes lie in a body."""

    at: int
    """Bytes before them."""
    nbytes: int


@dataclass(frozen=True, slots=True)
class TensorSpan:
    """Where a tensor's logical contents lie in a body, and how they lie in memory."""

    at: int
    """Bytes before them."""
    nbytes: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    """In elements."""
    dtype: str
    """A torch dtype's name without `torch.`, e.g. "float32"."""


class Body:
    """Collects tensors while a header is built."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, tensor: torch.Tensor) -> TensorSpan:
        """Append a tensor, which `tensor` reads back."""
        flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)  # lazy signs have no bytes
        raw = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        shape, stride = tuple(tensor.shape), tensor.stride()
        return TensorSpan(self._append(raw), len(raw), shape, stride, str(tensor.dtype).removeprefix("torch."))

    def add_bytes(self, raw: bytes) -> Span:
        """Append plain bytes, which `raw` reads back."""
        return Span(self._append(raw), len(raw))

    def _append(self, raw: bytes) -> int:
        at = self.size
        self.parts.append(raw)
        self.size += len(raw)
        return at


def whole_number(text: str, digits: int) -> int | None:
    """The whole number that a text is, of so many digits at most and written as numbers are; None where it is none.

    >>> [whole_number(text, 2) for text in ("7", "07", "123", "-1", "")]
    [7, None, None, None, None]
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= digits):
        return None
    return int(text) if str(int(text)) == text else None


def pack(header: dict[str, Any], body: Body | None = None) -> bytes:
    """A message in one piece."""
    if body is None:
        return head(header, 0)
    return b"".join([head(header, body.size), *body.parts])


def head(header: dict[str, Any], body: int) -> bytes:
    """A message up to its body, which has so many bytes."""
    text = json.dumps(header).encode()
    return PREFIX.pack(len(text), body) + text


def sizes(prefix: bytes, max_body: int = MAX_BODY) -> tuple[int, int]:
    """Header and body length; raises BadMessage when they are absurd."""
    header, body = PREFIX.unpack(prefix)
    if header > MAX_HEADER or body > max_body:
        raise BadMessage(f"a message of {header} + {body} bytes")
    return header, body


def fits(message: bytes) -> bool:
    """Whether whoever receives a packed message would read its header."""
    header, _ = PREFIX.unpack(message[: PREFIX.size])
    text = message[PREFIX.size : PREFIX.size + header]
    return header <= MAX_HEADER and _extent(text)[0] <= MAX_VALUES


def parse(text: bytes, most: int = MAX_VALUES) -> dict[str, Any]:
    """The header, of so many values at most; raises BadMessage. What its values would cost is known before one is made."""
    values, depth = _extent(text)
    if values > most:
        raise BadMessage(f"a header of more than {most} values")
    if depth > MAX_DEPTH:
        raise BadMessage(f"a header nested deeper than {MAX_DEPTH}")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadMessage(f"a header that is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise BadMessage("a header that is not an object")
    return header


def _extent(text: bytes) -> tuple[int, int]:
    """Bounds on how many values JSON text holds and on how deep they are nested, from its brackets and commas outside strings."""
    plain = np.frombuffer(text.replace(b"\\\\", b"").replace(b'\\"', b""), dtype=np.uint8)
    inside = np.cumsum(plain == ord('"'), dtype=np.int32) & 1
    codes = plain[inside == 0]
    opened, closed = (codes == ord("[")) | (codes == ord("{")), (codes == ord("]")) | (codes == ord("}"))
    steps = opened.astype(np.int32) - closed
    return int(opened.sum() + (codes == ord(",")).sum()) + 1, int(np.cumsum(steps, dtype=np.int32).max(initial=0)) + 1


def tensor(span: TensorSpan, body: bytes) -> torch.Tensor:
    """The tensor that lies at `span`, with its strides. Raises BadMessage."""
    found, shape, stride = bytearray(_within(span, body)), list(span.shape), list(span.stride)
    try:
        dtype = DTYPES[span.dtype]
        flat = torch.frombuffer(found, dtype=dtype) if found else torch.empty(0, dtype=dtype)
        logical = flat.reshape(shape)
        if list(logical.stride()) == stride:
            return logical
        strided = torch.empty_strided(shape, stride, dtype=dtype)
        overwrite(strided, logical)
        return strided
    except (TypeError, ValueError, RuntimeError, KeyError) as error:
        raise BadMessage(f"a bad tensor: {error}") from error


def raw(span: Span | TensorSpan, body: bytes) -> bytes:
    """The bytes that lie at `span`. Raises BadMessage."""
    return bytes(_within(span, body))


def _within(span: Span | TensorSpan, body: bytes) -> memoryview:
    if not 0 <= span.at <= span.at + span.nbytes <= len(body):
        raise BadMessage("bytes outside the message")
    return memoryview(body)[span.at : span.at + span.nbytes]


def send(sock: socket.socket, message: bytes) -> None:
    """Blocking write of one message, by write(2): a locked process keeps no socket calls."""
    view = memoryview(message)
    while view:
        view = view[os.write(sock.fileno(), view) :]


def receive(sock: socket.socket) -> tuple[dict[str, Any], bytes] | None:
    """Blocking read of one message, as a child is asked with them; None at the end of the stream."""
    prefix = _exactly(sock, PREFIX.size)
    if prefix is None:
        return None
    header, body = sizes(prefix)
    text, raw = _exactly(sock, header), _exactly(sock, body)
    if text is None or raw is None:
        raise BadMessage("the stream ended inside a message")
    return parse(text, MOST_ASKED), raw


def _exactly(sock: socket.socket, count: int) -> bytes | None:
    buffer = bytearray(count)
    view, done = memoryview(buffer), 0
    while done < count:
        got = sock.recv_into(view[done:])
        if got == 0:
            return None
        done += got
    return bytes(buffer)
