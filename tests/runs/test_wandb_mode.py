"""What becomes of a wish to log online: a service that is out of reach, a key that it refuses, a mode that does not exist."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from rlkernel.errors import UsageError
from rlkernel.runs import wandb_mode
from rlkernel.runs.log import RunLog
from rlkernel.runs.wandb import open_wandb
from tests.runs import wandb_files
from tests.runs.test_wandb import RUN, step

KEY = "a" * 40


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """wandb reads its variables once per process: its own process ends before and after."""
    import wandb

    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_PROJECT", "WANDB_BASE_URL", "WANDB_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    wandb.teardown()
    wandb_mode._asked.cache_clear()
    yield
    wandb.teardown()
    wandb_mode._asked.cache_clear()


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a service that nobody answers for."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("WANDB_BASE_URL", address)
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    return address


@contextmanager
def answering(status: int, body: Any) -> Iterator[str]:
    """The address of a service that gives every question the same answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_without_a_network_the_run_is_there_offline_and_one_line_says_how_to_send_it(
    closed: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wandb_mode.check()  # it is no reason not to begin
    with open_wandb(tmp_path, RUN, {"wandb_id": "abcd1234"}) as remote:
        assert remote is not None and remote.run.offline
        step(RunLog(tmp_path, remote), 0, "validation")
    out, err = capfd.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith(f"Weights & Biases cannot be reached ({closed}: [Errno 111] Connection refused): this run is logged")
    assert line.endswith(f"send it later with `wandb sync {tmp_path}/wandb/offline-run-*`")
    assert [row["validation/reward"] for row in wandb_files.history(tmp_path)] == [0.0]
    assert len(list(tmp_path.glob("wandb/offline-run-*"))) == 1  # what the line names


def test_a_service_that_is_gone_a_moment_later_is_no_error_either(
    closed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The first request was answered, and W&B's own process finds nobody."""
    monkeypatch.setattr(wandb_mode, "unreachable", lambda: None)
    monkeypatch.setattr(wandb_mode, "CONNECT_SECONDS", 0.5)
    with open_wandb(tmp_path, RUN, {"wandb_id": "abcd1234"}) as remote:
        assert remote is not None and remote.run.offline
    assert "this run is logged offline; send it later" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [(401, {}, "HTTP 401"), (403, {}, "HTTP 403"), (200, {"data": {"viewer": None}}, "nobody has it")],
)
def test_a_key_that_is_refused_is_one_line(status: int, body: Any, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    with answering(status, body) as address:
        monkeypatch.setenv("WANDB_BASE_URL", address)
        with pytest.raises(UsageError) as told:
            wandb_mode.check()
    assert str(told.value) == (f"Weights & Biases does not accept the key ({why}): mend WANDB_API_KEY, or set WANDB_MODE=offline")


@pytest.mark.parametrize(("status", "body"), [(200, {"data": {"viewer": {"id": "me"}}}), (200, []), (500, {}), (404, {})])
def test_a_service_that_answers_otherwise_is_left_to_wandb(status: int, body: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    with answering(status, body) as address:
        monkeypatch.setenv("WANDB_BASE_URL", address)
        assert wandb_mode.unreachable() is None


def test_a_mode_that_does_not_exist_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WANDB_MODE", "ofline")
    asked: list[Callable[[], object]] = [
        wandb_mode.mode,
        wandb_mode.check,
        lambda: open_wandb(tmp_path, RUN, {"wandb_id": "a"}).__enter__(),
    ]
    for ask in asked:
        with pytest.raises(UsageError, match=r"^WANDB_MODE is 'ofline': choose online, offline or disabled, or unset it$"):
            ask()
    monkeypatch.setenv("WANDB_MODE", "")
    assert wandb_mode.mode() == "offline"


def test_without_wandb_there_is_one_line_before_anything_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("WANDB_MODE", "offline")
    with pytest.raises(UsageError, match=r"^wandb is not installed: .* or set WANDB_MODE=disabled$"):
        wandb_mode.check()
    monkeypatch.setenv("WANDB_MODE", "disabled")
    wandb_mode.check()


def test_offline_and_disabled_ask_nobody(closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wandb_mode, "unreachable", lambda: pytest.fail("it was asked"))
    for mode in ("offline", "disabled"):
        monkeypatch.setenv("WANDB_MODE", mode)
        wandb_mode.check()


def test_files_for_an_upload_lie_in_the_run_and_not_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("first", "second"):
        wandb_mode.keep_files_in(tmp_path / name)
        assert os.environ["WANDB_DATA_DIR"] == str(tmp_path / name / "wandb" / "data")
    monkeypatch.setenv("WANDB_DATA_DIR", "/mine")
    wandb_mode.keep_files_in(tmp_path)
    assert os.environ["WANDB_DATA_DIR"] == "/mine"
