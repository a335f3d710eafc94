"""An evaluation that is over before its last stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rlkernel.types import Status


class Ended(Exception):
    """The evaluation is over: a verdict before the end."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.ran = False
        """Whether it was while kernels ran."""
        self.at_full = False
        """Whether it was found at full shape, so that no other sizes can excuse it."""
        self.sizes: Mapping[str, Any] = {}
        """The constants of the problem's file that had other values."""


@contextmanager
def compared_at(sizes: Mapping[str, Any]) -> Iterator[None]:
    """Let a verdict that ends what is inside say the sizes of the problem's constants."""
    try:
        yield
    except Ended as end:
        end.sizes = sizes
        raise
