"""A model that cannot be had is told at once, in one line."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest

from rlkernel.errors import UsageError
from rlkernel.policy import load
from rlkernel.policy.load import load_model


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a hub that nobody answers for."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    return address


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the libraries are asked for; they have nothing."""
    seen: list[dict[str, Any]] = []

    def nothing(name: str, **options: Any) -> Any:
        seen.append({"name": name, **options})
        raise OSError("nothing here\nbut more lines")

    monkeypatch.setattr(load.AutoTokenizer, "from_pretrained", nothing)
    return seen


def test_a_hub_out_of_reach_is_asked_once(closed: str, asked: list[dict[str, Any]]) -> None:
    with pytest.raises(UsageError) as told:
        load_model("nosuch/model")
    start = f"model 'nosuch/model' cannot be loaded (it is no directory, not in the cache, and {closed} cannot be reached ("
    assert str(told.value).startswith(start) and "\n" not in str(told.value)
    assert asked == [{"name": "nosuch/model", "local_files_only": True}]


def test_the_variable_of_the_hub_is_respected(asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UsageError, match="not in the cache, and HF_HUB_OFFLINE forbids to ask the hub"):
        load_model("nosuch/model")


def test_a_directory_asks_nobody(closed: str, asked: list[dict[str, Any]], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be loaded \(nothing here\): give `small`, the directory"):
        load_model(str(tmp_path))
    assert asked == [{"name": str(tmp_path), "local_files_only": False}]


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A hub that answers everything with 403."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_error(403)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        yield
        server.shutdown()


def test_a_hub_that_answers_is_left_to_the_libraries(refusing: None, asked: list[dict[str, Any]]) -> None:
    with pytest.raises(UsageError, match=r"cannot be loaded \(nothing here\)"):
        load_model("nosuch/model")
    assert asked == [{"name": "nosuch/model", "local_files_only": False}]
