"""The server of `examples.http_engine` in a thread of a test. Not a test."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from examples.http_engine import make_server


@contextmanager
def serving(model: Any) -> Iterator[str]:
    """The address of a server that samples from a model like `model`, with zeros for weights until it gets others."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    server = make_server(other)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
