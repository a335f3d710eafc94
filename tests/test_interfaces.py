"""The registered methods are what the Protocols ask for, and a method of one kind is not taken for another."""

from __future__ import annotations

from typing import get_args

import pytest

from algorithms import TABLES
from rlkernel.config import METHODS
from rlkernel.interfaces import Correction, Credit, Removes

PROTOCOLS = {"correction" if kind == "corrections" else kind: protocol for kind, protocol in METHODS.items()}
EVERY = [(kind, cls) for kind, table in TABLES.items() for cls in table.values()]


def test_every_kind_of_method_is_registered() -> None:
    assert {kind for kind, _ in EVERY} == set(PROTOCOLS)


@pytest.mark.parametrize(("kind", "cls"), EVERY, ids=lambda value: getattr(value, "__name__", value))
def test_methods_fit_their_protocol(kind: str, cls: type) -> None:
    method = cls()
    assert isinstance(method, PROTOCOLS[kind])
    assert isinstance(method, Correction) is (kind == "correction")
    assert isinstance(method, Credit) is (kind == "credit")
    if isinstance(method, Correction):
        assert method.removes in get_args(Removes)
        assert isinstance(method.needs_ratios, bool)
