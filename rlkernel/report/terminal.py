"""Prints what a report says in a terminal of 100 columns: the finding, the table of arms, the verdicts of the claims."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from rlkernel.report.claims import DecidedClaim
from rlkernel.report.columns import Metric
from rlkernel.report.findings import finding
from rlkernel.report.summary import ArmSummary, columns_of
from rlkernel.statistics import p_text

COLUMNS = 100
"""The width of the terminal's table in columns."""
LONGEST_NAME = 18
"""The columns after which an arm's name goes on in the next line."""
MOST_MISSING = 3
"""The most absent arms that are named."""


def print_finding(decided: Sequence[DecidedClaim], arms: Sequence[ArmSummary], console: Console | None = None) -> None:
    """Print the report's first line, in at most 100 columns."""
    console = console or Console(width=COLUMNS)
    console.print(textwrap.fill(finding(decided, arms), COLUMNS), markup=False, highlight=False, style="bold")


def print_table(arms: Sequence[ArmSummary], timing: str, console: Console | None = None) -> None:
    """Print the first and last validation values of every arm and its difference to the baseline, in at most 100 columns: in
    several tables where one would be wider. Rewards are left out where the arms are paid by different ones."""
    console = console or Console(width=COLUMNS)
    seeds = max(len(arm.seeds) for arm in arms)
    over = f"; ± is half the range over {seeds} seeds" if seeds > 1 else ""
    console.print(f"validation, first → last ({timing} time{over})", style="italic")
    rest = [metric for metric in columns_of(arms) if metric.brief]
    while rest:  # a part of the metrics at a time, as many as fit
        count = next((n for n in range(len(rest), 1, -1) if _width(_table(arms, rest[:n])) <= COLUMNS), 1)
        console.print(_table(arms, rest[:count]))
        rest = rest[count:]
        if rest:
            console.print()


def _width(table: Table) -> int:
    """The columns that a table takes if nothing of it is folded."""
    return Console(width=10 * COLUMNS).measure(table).maximum


def _table(arms: Sequence[ArmSummary], metrics: Sequence[Metric]) -> Table:
    """The table of some of the metrics."""
    table = Table(box=None, pad_edge=False)
    table.add_column("arm", overflow="fold", max_width=LONGEST_NAME)
    table.add_column("steps", justify="right")
    for metric in metrics:
        table.add_column(metric.label, justify="right", no_wrap=True)
    for arm in arms:
        cells = [f"{arm.first[m.key].show(m).split(' ')[0]} → {arm.last[m.key].show(m)}" for m in metrics]
        table.add_row(arm.arm, str(arm.steps), *cells)
    for arm in arms:
        if arm.difference is not None:
            found = [(m, arm.difference[m.key]) for m in metrics]
            cells = [m.show_mean(difference) for m, difference in found]
            table.add_row(f"{arm.arm} - {arms[0].arm}", "", *cells, style="bold")
            if any(difference.interval is not None for _, difference in found):
                table.add_row("  95 % interval", "", *(m.show_interval(difference) for m, difference in found))
            if all(difference.told_p is not None for _, difference in found):
                table.add_row("  p over problems", "", *(p_text(difference.told_p) for _, difference in found))
    return table


def print_claims(decided: Sequence[DecidedClaim], arms: Sequence[str], console: Console | None = None) -> None:
    """Print the verdict of every claim whose arms are among `arms`, in at most 100 columns, and one line about the others."""
    console = console or Console(width=COLUMNS)
    present = [found for found in decided if {found.claim.better, found.claim.worse} <= set(arms)]
    lines = [f"{found.shown}: {found.claim.told} ({found.reason})" for found in present]
    if others := len(decided) - len(present):
        missing = dict.fromkeys(arm for f in decided for arm in (f.claim.better, f.claim.worse) if arm not in arms)
        needed = ", ".join(missing) if len(missing) <= MOST_MISSING else f"{len(missing)} other arms"
        lines.append(f"{others} more claim{'s need' if others > 1 else ' needs'} {needed}")
    for line in lines:
        console.print(textwrap.fill(line, COLUMNS, subsequent_indent="  "), markup=False, highlight=False)
