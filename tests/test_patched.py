"""Attributes have other values inside, and their own afterwards, however that was left."""

from __future__ import annotations

import types

import pytest

from rlkernel.patched import patched


class Base:
    kept = 1


class Derived(Base):
    own = 2


def test_values_inside_and_afterwards() -> None:
    with pytest.raises(ZeroDivisionError), patched(Derived, own=3, kept=4):
        assert (Derived.own, Derived.kept, Base.kept) == (3, 4, 1)
        _ = 1 / 0
    assert (Derived.own, Derived.kept) == (2, 1)
    assert "kept" not in vars(Derived)  # it is inherited again


def test_a_static_method_stays_one() -> None:
    class Owner:
        @staticmethod
        def call() -> int:
            return 5

    with patched(Owner, call=lambda: 6):
        assert Owner.call() == 6
    assert Owner().call() == 5


def test_a_name_that_is_not_there_is_an_error_unless_it_is_created() -> None:
    module = types.ModuleType("module")
    with pytest.raises(AttributeError, match="absent"), patched(module, absent=1):
        pass
    with patched(module, create=True, absent=1):
        assert vars(module)["absent"] == 1
    assert "absent" not in vars(module)


def test_what_was_removed_inside_is_no_error() -> None:
    with patched(Derived, kept=4):
        del Derived.kept
    assert Derived.kept == 1
