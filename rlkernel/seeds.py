"""Every random number of a reference follows one seed, whichever library draws it and whatever seeds its file sets.

A file may draw by torch, by numpy or by Python, from global generators or from generators of its own. Numbers that are the same
in every round would let a kernel keep its first answer. So a seed that the file sets itself is mixed with the round's: the same
two give the same numbers, in every process. Python's own `random` is not mixed where the file seeds it, because files choose
sizes by it. Source: ours.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

Stream = Callable[[], None]
"""Sets a generator that lives longer than one call back to its start, under the seed that holds now."""

WORDS = ("random", "numpy", "Generator", "seed")
"""Words of which a file's text has one if it draws by something else than torch's own generators, or sets a seed."""
_now = 0
"""The seed that holds now."""
_made: list[Stream] | None = None
"""Where generators are noted that a file makes while it is loaded; None while one of its functions runs."""


def seed_generators(seed: int) -> None:
    """`torch.manual_seed` without its bookkeeping for absent back ends, which costs 2 ms a call."""
    torch.default_generator.manual_seed(seed)
    _seed_cards(seed)


def _seed_cards(seed: int) -> None:
    """Seed torch's generators on the GPUs, where these are in use."""
    # A CUDA graph that is recorded keeps the seed that was set before, and refuses another.
    if torch.cuda.is_initialized() and not torch.cuda.is_current_stream_capturing():  # type: ignore[no-untyped-call]
        for generator in torch.cuda.default_generators:
            generator.manual_seed(seed)


@contextmanager
def following(seed: int, streams: tuple[Stream, ...] = ()) -> Iterator[None]:
    """Inside, all random numbers follow `seed`: those of the global generators, of `streams`, and of generators made inside."""
    global _now
    before, _now = (_now, random.getstate(), np.random.get_state()), seed
    try:
        with _patched():
            seed_generators(seed)
            random.seed(seed)
            _numpy_seed(_mixed(None))
            for stream in streams:
                stream()
            yield
    finally:
        _now, python, numpy = before
        random.setstate(python)
        np.random.set_state(numpy)


@contextmanager
def noting() -> Iterator[list[Stream]]:
    """Inside, a file is loaded; what is yielded holds the generators that it has made, which live as long as its module."""
    global _made
    before, _made = _made, list[Stream]()
    try:
        with _patched():
            yield _made
    finally:
        _made = before


def _mixed(own: Any) -> int:
    """A seed of 32 bits, made of one that a file has set, or of None, and of the one that holds now."""
    return int.from_bytes(hashlib.sha256(f"{_now} {own!r}".encode()).digest()[:4], "little")


def _note(stream: Stream) -> None:
    if _made is not None:
        _made.append(stream)


class _TorchGenerator(torch.Generator):
    """A generator of the file's own; without the device that it names, on the host."""

    def __new__(cls, device: Any = "cpu") -> _TorchGenerator:
        try:
            made = super().__new__(cls, device)  # type: ignore[call-arg]
        except RuntimeError:
            made = super().__new__(cls, "cpu")  # type: ignore[call-arg]
        made.manual_seed(0)
        _note(lambda: made._follow())
        return made

    def manual_seed(self, seed: int) -> _TorchGenerator:
        self._own = seed
        self._follow()
        return self

    def _follow(self) -> None:
        super().manual_seed(_mixed(self._own))

    def seed(self) -> int:
        self.manual_seed(0)
        return self.initial_seed()


class _NumpyState(np.random.RandomState):
    """numpy's older generator, of the file's own."""

    def __init__(self, seed: Any = None) -> None:
        given = isinstance(seed, np.random.BitGenerator)
        super().__init__(seed if given else _mixed(seed))
        self._own = seed
        if not given:  # which follows by itself
            _note(lambda: self.seed(self._own))

    def seed(self, seed: Any = None) -> None:
        self._own = seed
        super().seed(_mixed(seed))


class _Random(random.Random):
    """Python's generator, of the file's own, with the file's own seed."""

    def __init__(self, seed: Any = None) -> None:
        super().__init__(_mixed(None) if seed is None else seed)
        _note(lambda: self.seed(_mixed(None) if seed is None else seed))


_numpy_seed, _numpy_rng = np.random.seed, np.random.default_rng


def _default_rng(seed: Any = None) -> np.random.Generator:
    """numpy's newer generator, of the file's own; one that is given is returned, as numpy does."""
    if isinstance(seed, (np.random.Generator, np.random.BitGenerator)):
        return _numpy_rng(seed)
    made = _numpy_rng(_mixed(seed))

    def follow() -> None:
        made.bit_generator.state = _numpy_rng(_mixed(seed)).bit_generator.state

    _note(follow)
    return made


def _bits(theirs: Any) -> Any:
    """numpy's generator of bits of this kind, of the file's own."""

    class Bits(theirs):  # type: ignore[misc]
        def __init__(self, seed: Any = None) -> None:
            super().__init__(_mixed(seed))
            _note(lambda: setattr(self, "state", theirs(_mixed(seed)).state))

    Bits.__name__ = theirs.__name__  # which a state is looked at for
    return Bits


def _manual_seed(seed: int) -> torch.Generator:
    seed_generators(_mixed(seed))
    return torch.default_generator


_OURS: tuple[tuple[Any, str, Any], ...] = (
    (np.random, "seed", lambda seed=None: _numpy_seed(_mixed(seed))),
    (np.random, "default_rng", _default_rng),
    (np.random, "RandomState", _NumpyState),
    (random, "Random", _Random),
    (torch, "Generator", _TorchGenerator),
    (torch, "manual_seed", _manual_seed),
    (torch.random, "manual_seed", _manual_seed),
    (torch, "seed", lambda: _manual_seed(0).initial_seed()),
    *((torch.cuda, name, lambda seed: _seed_cards(_mixed(seed))) for name in ("manual_seed", "manual_seed_all")),
    *((torch.cuda, name, lambda: _seed_cards(_mixed(0))) for name in ("seed", "seed_all")),
    *((np.random, name, _bits(getattr(np.random, name))) for name in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")),
)


@contextmanager
def _patched() -> Iterator[None]:
    """Inside, generators are ours and seeds are mixed."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in _OURS]
    for owner, name, ours in _OURS:
        setattr(owner, name, ours)
    try:
        yield
    finally:
        for owner, name, theirs in before:
            setattr(owner, name, theirs)
