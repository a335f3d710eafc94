"""A local OpenAI-compatible server that fails as told. Not a test."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-only-for-tests-5f2c"


@dataclass
class Scripted:
    """`faults` are used up, one per request, before answers are given; a fault may also be a function of the request."""

    answer: Callable[[dict[str, Any]], Any]
    """What is answered to a request's body: the message's content, or a whole reply as a dict."""
    faults: list[str] = field(default_factory=list)
    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    held: threading.Event = field(default_factory=threading.Event)
    """A request hangs."""
    closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    open_now: int = 0
    open_most: int = 0


def completion(text: str | None, finish: str = "stop", prompt: int = 100, made: int = 10) -> dict[str, Any]:
    return {
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": made},
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Scripted

    def log_message(self, *args: Any) -> None:
        """Silent."""

    def _send(self, status: int, body: bytes, claimed: int | None = None, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body) if claimed is None else claimed))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = claimed is not None

    def do_POST(self) -> None:
        script = self.script
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with script.lock:
            script.bodies.append(body)
            script.keys.append(self.headers.get("Authorization"))
            fault = script.faults.pop(0) if script.faults else ""
            script.open_now += 1
            script.open_most = max(script.open_most, script.open_now)
        try:
            self._reply(script, body, fault)
        finally:
            with script.lock:
                script.open_now -= 1

    def _reply(self, script: Scripted, body: dict[str, Any], fault: str) -> None:
        kind, _, detail = fault.partition(":")
        if kind == "hang":
            script.held.set()
            script.closing.wait(60)
            self.close_connection = True
        elif kind == "429":
            self._send(429, b'{"error": {"message": "slow down"}}', **({"Retry_After": detail} if detail else {}))
        elif kind.isdecimal():
            said = detail or f"no, {self.headers.get('Authorization')} will not do"
            self._send(int(kind), json.dumps({"error": {"message": said}}).encode())
        elif kind == "garbage":
            self._send(200, b"<html>upstream says \xff\xfe</html>")
        elif kind == "shape":
            self._send(200, b'{"choices": []}')
        elif kind == "truncated":
            whole = json.dumps(completion("half")).encode()
            self._send(200, whole[: len(whole) // 2], claimed=len(whole))
        else:
            found = script.answer(body)
            self._send(200, json.dumps(found if isinstance(found, dict) else completion(found)).encode())


@contextmanager
def serving(script: Scripted) -> Iterator[Scripted]:
    handler = type("Handler", (_Handler,), {"script": script})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    script.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        script.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
