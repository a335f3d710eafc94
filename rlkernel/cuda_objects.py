"""Streams, events and generators of a GPU as host code sees them where there is none, or where nothing runs on it."""

from __future__ import annotations

from typing import Any

import torch


class Stream:
    """A stream without effect: there is one order, and work on side streams is part of it."""

    cuda_stream = 0
    device = torch.device("cuda", 0)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def _no_effect(self, *args: Any, **kwargs: Any) -> None:
        return None

    synchronize = wait_stream = wait_event = _no_effect

    def query(self) -> bool:
        return True

    def record_event(self, event: Any = None) -> Any:
        return event or Event()


ELAPSED_MS = 1.0
"""What lies between any two events. A device's time is not known where nothing runs on one."""


class Event:
    """An event of no stream."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs

    def _no_effect(self, *args: Any, **kwargs: Any) -> None:
        return None

    record = wait = synchronize = _no_effect

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Any) -> float:
        """The same for all, so that who compares configurations by hand takes the first one."""
        del other
        return ELAPSED_MS


class Generator(torch.Generator):
    """A generator of its own, on any device: it can be made and seeded, and no operator that is recorded takes it."""

    def __new__(cls, device: Any = None) -> Generator:
        del device
        return super().__new__(cls, "cpu")  # type: ignore[call-arg]
