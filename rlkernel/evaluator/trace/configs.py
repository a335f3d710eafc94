"""The configurations of a trace's launches: one object for all that are equal, since a forward launches thousands of times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rlkernel.evaluator.program.schema import Config
from rlkernel.evaluator.program.values import Value


class Configs:
    """Makes configurations, and keeps them."""

    def __init__(self) -> None:
        self._known: dict[Any, Config] = {}
        self._rows: dict[tuple[int, ...], tuple[Config, ...]] = {}
        """The configurations of one launch, by the identities of kept ones."""
        self._kept: set[int] = set()

    def of(
        self, constants: dict[str, Value], options: dict[str, int], grid: tuple[int, int, int], blocks: dict[str, tuple[int, ...]]
    ) -> Config:
        """A configuration, which nobody may change."""
        try:
            key = _exact(constants.items()), _exact(options.items()), grid, tuple(map(type, grid)), tuple(blocks.items())
            known = self._known.get(key)
        except TypeError:  # a list among the constants
            return Config(constants, options, grid, blocks)
        if known is None:
            known = self._known[key] = Config(constants, options, grid, blocks)
            self._kept.add(id(known))
        return known

    def together(self, configs: Sequence[Config]) -> tuple[Config, ...]:
        """The configurations of one launch."""
        key = tuple(map(id, configs))
        known = self._rows.get(key)
        if known is None:
            known = tuple(configs)
            if self._kept.issuperset(key):  # no other object can have one of these identities
                self._rows[key] = known
        return known


def _exact(items: Iterable[tuple[str, Value]]) -> tuple[Any, ...]:
    """Names and values so that 1, 1.0 and True are three, and 0.0 and -0.0 two."""
    return tuple((name, type(value), repr(value) if type(value) is float else value) for name, value in items)
