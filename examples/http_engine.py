"""An engine of your own behind rlkernel's door: one that samples in another process, spoken to over HTTP.

    python -m examples.http_engine --model small --port 8001                 # the process that samples
    RLKERNEL_ENGINE=http://127.0.0.1:8001 python -m experiments.multi_turn_estimators grpo --config engine.toml

where engine.toml has `engine = "examples.http_engine:HttpEngine"` for its arms. Whatever a serving library is called behind the
server, these are all the requests that it must answer, each with {"active", "free"} and, where there are any, {"samples"}:

    POST /open      {"stops", "temperature", "slots"}       forget everything and be ready
    POST /advance   {"joining": [...], "tokens"}            `Engine.advance`; requests and samples are the fields of their classes
    POST /weight?name=...   the weight as a safetensors file; it replaces the one of that name
    POST /refresh           all weights have come: forget what was computed with earlier ones

409 says that completions are in flight, 400 what else is wrong. The server samples from a model of its own; where it reads the
weights of a path that both can see instead, /weight is one request. Nothing is encrypted and nobody is asked for a password: keep
the port on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import safetensors.torch
import torch

from rlkernel.errors import UsageError, one_line
from rlkernel.policy.engine import Engine, Request, Sample, check_idle, check_temperature
from rlkernel.policy.load import load_model
from rlkernel.policy.replica import merged, plain_model
from rlkernel.policy.slots.engine import SlotEngine

ADDRESS = "RLKERNEL_ENGINE"
"""The environment variable that has the server's address."""


class HttpEngine:
    """An `rlkernel.policy.engine.Engine` that samples where the environment variable `ADDRESS` says."""

    def __init__(self, model: Any, stop_ids: frozenset[int], temperature: float, *, slots: int = 128, url: str = "") -> None:
        """model: the trainer's, whose weights are sent, with adapters merged. Raises ValueError unless temperature > 0, and
        UsageError where nobody answers."""
        check_temperature(temperature)
        self._model = model
        self._client = httpx.Client(base_url=url or os.environ.get(ADDRESS, "http://127.0.0.1:8001"), timeout=None)
        self._state: dict[str, int] = {"active": 0, "free": slots}
        self._post("/open", json={"stops": sorted(stop_ids), "temperature": temperature, "slots": slots})
        self.refresh()

    @property
    def active(self) -> int:
        """The requests that joined and have not finished."""
        return self._state["active"]

    @property
    def free(self) -> int:
        """The further requests that would be sampled at once."""
        return self._state["free"]

    def advance(self, joining: Sequence[Request], tokens: int) -> list[Sample]:
        """Admit requests and sample; see `Engine.advance`."""
        found = self._post("/advance", json={"joining": [asdict(request) for request in joining], "tokens": tokens})
        return [Sample(s["key"], tuple(s["token_ids"]), tuple(s["logprobs"]), s["stop"]) for s in found["samples"]]

    @torch.no_grad()
    def refresh(self) -> None:
        """Send the trainer's weights; see `Engine.refresh`."""
        check_idle(self)
        for name, tensor in merged(plain_model(self._model)):
            content = safetensors.torch.save({"weight": tensor.detach().cpu().contiguous()})
            self._post(f"/weight?{urlencode({'name': name})}", content=content)
        self._post("/refresh")

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def _post(self, path: str, **body: Any) -> dict[str, Any]:
        try:
            response = self._client.post(path, **body)
        except httpx.HTTPError as error:
            where = f"the engine at {self._client.base_url}"
            raise UsageError(f"{where} does not answer ({one_line(error)}): is {ADDRESS} right?") from error
        if response.status_code == 409:
            raise RuntimeError(response.text)
        if response.status_code != 200:
            raise UsageError(f"the engine at {self._client.base_url} refuses {path}: {response.text}")
        found: dict[str, Any] = response.json()
        self._state = {name: found[name] for name in ("active", "free")}
        return found


class Sampler:
    """What the server does with a model of its own."""

    def __init__(self, model: Any) -> None:
        self.model = model.eval().requires_grad_(False)
        self.engine: Engine | None = None

    def answer(self, path: str, query: dict[str, list[str]], body: bytes) -> dict[str, Any]:
        """The answer to one request. Raises RuntimeError while completions are in flight, ValueError for a wrong request."""
        samples: list[Sample] = []
        if path == "/open":
            given = json.loads(body)
            self.engine = SlotEngine(self.model, frozenset(given["stops"]), given["temperature"], slots=given["slots"])
        if self.engine is None:
            raise ValueError("nothing is open: /open comes first")
        if path == "/advance":
            given = json.loads(body)
            joining = [Request(**{**request, "context_ids": tuple(request["context_ids"])}) for request in given["joining"]]
            samples = self.engine.advance(joining, given["tokens"])
        elif path == "/weight":
            check_idle(self.engine)
            weight = self.model.get_parameter(query["name"][0])
            with torch.no_grad():
                weight.copy_(safetensors.torch.load(body)["weight"])
        elif path == "/refresh":
            self.engine.refresh()
        elif path != "/open":
            raise ValueError(f"there is no {path}")
        return {"active": self.engine.active, "free": self.engine.free, "samples": [asdict(sample) for sample in samples]}


def make_server(model: Any, port: int = 0) -> HTTPServer:
    """A server on this machine that samples from `model`, one request and connection at a time; `serve_forever` runs it. port 0:
    any that is free."""
    sampler = Sampler(model)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            parts = urlsplit(self.path)
            try:
                status, text = 200, json.dumps(sampler.answer(parts.path, parse_qs(parts.query), body))
            except RuntimeError as error:
                status, text = 409, str(error)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                status, text = 400, f"{type(error).__name__}: {error}"
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Requests are not worth a line each."""

    return HTTPServer(("127.0.0.1", port), Handler)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="small", help="as Run.model: its weights are replaced by the trainer's")
    parser.add_argument("--port", type=int, default=8001)
    given = parser.parse_args()
    model = load_model(given.model, weights="bfloat16" if torch.cuda.is_available() else "float32")[0]
    server = make_server(model.to("cuda" if torch.cuda.is_available() else "cpu"), given.port)
    print(f"sampling at http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
