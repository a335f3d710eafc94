"""Our verdicts beside native runs of kernels that other people's models wrote: who is right, and how far speedups agree.

    python -m benchmarks.wild_corpus --out CORPUS CLONE [CLONE ...]
    python -m benchmarks.wild_native CORPUS/manifest.jsonl --out native.jsonl
    rlkernel evaluate --manifest CORPUS/manifest.jsonl --out ours.jsonl --device cuda:0
    python -m benchmarks.wild native.jsonl ours.jsonl [--out table.md]

A native run is *right* if it ended, its outputs have the reference's structure, shapes and dtypes, and all are within
KernelBench's 1e-2. Speedups are compared where both found the candidate right.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHORT_US = 100.0
"""Microseconds; kernels that are shorter may differ more."""
NATIVE = ("right", "wrong", "raised", "timeout", "died")


@dataclass(frozen=True, slots=True)
class Judged:
    """One candidate with both findings."""

    id: str
    native: str
    """One of `NATIVE`."""
    status: str
    row: dict[str, Any]
    ours: dict[str, Any]

    @property
    def ratio(self) -> float | None:
        """Our speedup over the native one; None unless both found the candidate right and timed it."""
        if self.native != "right" or self.status != "correct" or not self.ours.get("speedup"):
            return None
        return float(self.ours["speedup"]) / (self.row["reference_us"] / self.row["candidate_us"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("native", type=Path)
    parser.add_argument("ours", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    native, ours = _rows(given.native), _rows(given.ours)
    judged = [
        Judged(name, _class(native[name]), ours[name]["status"], native[name], ours[name]) for name in native if name in ours
    ]
    text = "\n".join([*table(judged), "", *disagreements(judged), "", *speedups(judged)])
    print(text)
    if given.out is not None:
        given.out.write_text(text + "\n")


def _rows(path: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in map(json.loads, path.read_text().splitlines())}


def _class(row: dict[str, Any]) -> str:
    if row["ended"] != "ran":
        return str(row["ended"])
    return "right" if row["same_structure"] and row["close_1e-2"] else "wrong"


def table(judged: Sequence[Judged]) -> list[str]:
    """Statuses by what the native run showed, as lines of Markdown."""
    counts = Counter((one.status, one.native) for one in judged)
    statuses = sorted({one.status for one in judged}, key=lambda status: (status != "correct", status))
    lines = [f"| our verdict | {' | '.join(f'natively {name}' for name in NATIVE)} |", "|---" * (len(NATIVE) + 1) + "|"]
    lines += [f"| `{status}` | {' | '.join(str(counts[status, name] or '') for name in NATIVE)} |" for status in statuses]
    right = [one for one in judged if one.native == "right"]
    accepted = sum(one.status == "correct" for one in right)
    unearned = sum(one.status == "correct" and one.native != "right" for one in judged)
    return [*lines, "", f"{accepted} of {len(right)} natively right candidates accepted; {unearned} accepted that are not."]


def disagreements(judged: Sequence[Judged]) -> list[str]:
    """A line for every natively right candidate that was refused, and for every accepted one that is not right."""
    lines = []
    for one in judged:
        if (one.native == "right") != (one.status == "correct"):
            error = f"native error {one.row['error']:.1e}" if "error" in one.row else str(one.row.get("detail", ""))
            detail = " ".join(str(one.ours["detail"]).split())
            lines.append(f"- {one.id}: natively {one.native} ({error[:90]}), ours `{one.status}`: {detail[:200]}")
    return ["Disagreements:", *(lines or ["- none"])]


def speedups(judged: Sequence[Judged]) -> list[str]:
    """How far our speedups are from native ones, long and short kernels apart, and the worst of them."""
    lines = []
    for name, long in ((f"{SHORT_US:g} us and more", True), ("shorter", False)):
        timed = [(abs(one.ratio - 1), one) for one in judged if one.ratio is not None]
        chosen = sorted(
            ((off, one) for off, one in timed if (one.row["candidate_us"] >= SHORT_US) == long), key=lambda found: -found[0]
        )
        within = {limit: sum(off <= limit for off, _ in chosen) for limit in (0.02, 0.03, 0.1)}
        counted = ", ".join(f"{count} within {limit:.0%}" for limit, count in within.items())
        lines.append(f"Speedups, candidates of {name}: {len(chosen)}, {counted}.")
        for off, one in chosen[:8]:
            if off > 0.03:
                native_us = f"{one.row['reference_us']:.0f} -> {one.row['candidate_us']:.0f} us"
                ours_us = f"{one.ours['reference_us']:.0f} -> {one.ours['candidate_us']:.0f} us"
                lines.append(f"- {one.id}: native {native_us}, ours {ours_us}")
    return lines


if __name__ == "__main__":
    main()
