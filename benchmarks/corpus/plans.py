"""A plan is how a problem is solved with one of the writers; its variants are the same plan in other sizes and designs.

`before` and `after` are the host lines around the launch of the kernel that varies. Every variant is another
text and another binary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import dedent

from benchmarks.corpus.kernels import Flat, Product, Rows, Tile, block, candidate
from rlkernel.types import Problem

Variants = Iterator[tuple[str, str]]
"""(what varies, the candidate's source)."""

BLOCKS = (512, 1024, 2048)
WARPS = (4, 8)
CHUNKS = (1024, 2048, 4096)
TILES = (Tile(64, 64, 32, 4), Tile(64, 64, 16, 4), Tile(32, 64, 32, 4), Tile(64, 128, 16, 8), Tile(128, 64, 16, 8))


def _join(*parts: str) -> str:
    return "".join(block(part, 0) for part in parts)


@dataclass(frozen=True, slots=True)
class FlatPlan:
    """Elementwise: block sizes by warps, one block per program and as a grid-stride loop."""

    kernel: Flat
    before: str = "y = torch.empty_like(x)"
    after: str = "return y"
    blocks: tuple[int, ...] = BLOCKS
    warps: tuple[int, ...] = WARPS

    def variants(self, problem: Problem) -> Variants:
        for strided in (False, True):
            for size in self.blocks:
                for warps in self.warps:
                    forward = _join(self.before, self.kernel.launch(size, warps, strided=strided), self.after)
                    name = f"{'strided' if strided else 'flat'} block={size} warps={warps}"
                    yield name, candidate(problem, self.kernel.text(strided=strided), forward)


@dataclass(frozen=True, slots=True)
class RowPlan:
    """One program per row: in registers with several numbers of warps, and looped over chunks. `beside` is a second
    kernel, `between` the host lines from the row kernel to it."""

    kernel: Rows
    before: str = "y = torch.empty_like(x)"
    after: str = "return y"
    registers: tuple[int, ...] = (4, 8, 16)
    """Warps; empty where a row does not fit."""
    looped: tuple[tuple[int, int], ...] = tuple((chunk, 8 if chunk > 1024 else 4) for chunk in CHUNKS)
    """(chunk, warps)."""
    beside: Flat | None = None
    between: str = ""

    def variants(self, problem: Problem) -> Variants:
        sizes: list[tuple[int | None, int]] = [(None, warps) for warps in self.registers]
        for size, warps in [*sizes, *self.looped]:
            kernels, forward = self.kernel.text(looped=size is not None), _join(self.before, self.kernel.launch(size, warps))
            if self.beside is not None:
                kernels += "\n" + self.beside.text(strided=False)
                forward += _join(self.between, self.beside.launch(1024, warps, strided=False))
            name = f"registers warps={warps}" if size is None else f"looped chunk={size} warps={warps}"
            yield name, candidate(problem, kernels, forward + _join(self.after))


@dataclass(frozen=True, slots=True)
class ProductPlan:
    """A tiled matrix product with its epilogue."""

    kernel: Product
    before: str
    after: str = "return c"
    tiles: tuple[Tile, ...] = TILES

    def variants(self, problem: Problem) -> Variants:
        for tile in self.tiles:
            forward = _join(self.before, self.kernel.launch(tile), self.after)
            yield f"product {tile}", candidate(problem, self.kernel.text(), forward)


@dataclass(frozen=True, slots=True)
class TextPlan:
    """Kernels and forward as they are written, with `$NAME` for what varies."""

    kernels: str
    forward: str
    settings: tuple[Mapping[str, int], ...] = field(default_factory=tuple)

    def variants(self, problem: Problem) -> Variants:
        for setting in self.settings:
            kernels, forward = dedent(self.kernels).strip("\n") + "\n", dedent(self.forward)
            for name, value in sorted(setting.items(), key=lambda item: -len(item[0])):
                kernels, forward = kernels.replace(f"${name}", str(value)), forward.replace(f"${name}", str(value))
            name = " ".join(f"{key.lower()}={value}" for key, value in setting.items())
            yield name, candidate(problem, kernels, forward)


Plan = FlatPlan | RowPlan | ProductPlan | TextPlan


def settings(**values: tuple[int, ...]) -> tuple[Mapping[str, int], ...]:
    """All combinations.

    >>> settings(A=(1, 2), B=(3,))
    ({'A': 1, 'B': 3}, {'A': 2, 'B': 3})
    """
    rows: list[dict[str, int]] = [{}]
    for name, choices in values.items():
        rows = [{**row, name: choice} for row in rows for choice in choices]
    return tuple(rows)
