"""A `MemoryPlan` as a person reads it: the table, and one line on whether the run fits."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from rlkernel.training.memory import GIB, MARGIN, MemoryPlan

LENGTHS = (2048, 4096, 8192, 16_384, 32_768)
"""The lengths of conversations for which it is told how many fit."""


def memory_table(found: MemoryPlan) -> Table:
    """The plan as a table of at most 100 columns."""
    million = found.parameters < 1e9
    count = f"{found.parameters / 1e6:.2f} million" if million else f"{found.parameters / 1e9:.2f}e9"
    table = Table(title=f"{found.model}: {count} parameters", title_justify="left", width=96)
    table.add_column("memory")
    table.add_column("GiB", justify="right")
    table.add_column("how")
    for part in found.parts:
        table.add_row(part.what, _gib(part.bytes), part.how)
    left = found.limit - found.taken
    table.add_row("together", _gib(found.taken), "", style="bold")
    table.add_row("there is", _gib(found.limit), found.others or _whose(found))
    each = f"{found.position_bytes / 1024:.3g} KiB a token"
    if left >= 0:
        table.add_row("left", _gib(left), f"{MARGIN:.0%} of it for keys and values, {each}")
    if not found.fits:
        table.add_row("missing", _gib(found.needed_bytes - found.limit), "with the keys and values of one conversation")
    lengths = {positions for positions in LENGTHS if positions <= found.positions and left >= 0}
    for positions in sorted({*lengths, found.needed_positions}):
        needed = f": {found.needed_how}" if positions == found.needed_positions else ""
        size, at_once = positions * found.position_bytes, found.slots(positions)
        table.add_row(f"conversation of {positions:,}", _gib(size), f"{at_once} at a time{needed}")
    return table


def _whose(found: MemoryPlan) -> str:
    return "the card's" if found.on_gpu else "this machine's memory, not a card's"


def _gib(size: int) -> str:
    """Bytes in GiB; two digits of what is small.

    >>> _gib(8_200_000_000), _gib(4_400_000), _gib(0)
    ('7.64', '0.0041', '0')
    """
    return f"{size / GIB:.2f}" if size / GIB >= 0.1 else f"{size / GIB:.2g}"


def verdict(found: MemoryPlan, helps: Sequence[str] = ()) -> str:
    """One line: whether the run fits, with how many conversations at a time, or what is missing. helps: what makes it fit."""
    if not found.fits:
        return advice(found, helps)
    fit = found.slots(found.needed_positions)
    return f"{found.model} fits: {fit} conversation{'s' if fit > 1 else ''} of {found.needed_positions:,} tokens at a time"


def advice(found: MemoryPlan, helps: Sequence[str]) -> str:
    """One line on a run that does not fit: what is missing, and what makes it fit."""
    there = f"{_gib(found.limit)} GiB of {'a card' if found.on_gpu else 'this machine'}"
    missing = f"{_gib(found.needed_bytes - found.limit)} GiB are missing"
    smaller = "a smaller model" if found.on_gpu else "a smaller model, or a machine with a card"
    fix = f"it fits with {', or with '.join(helps)}" if helps else f"no setting that was tried is enough: take {smaller}"
    return f"{found.model} does not fit: it needs {_gib(found.needed_bytes)} GiB, and may take {there}, so {missing}; {fix}"
