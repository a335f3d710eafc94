"""Our verdicts beside native runs of kernels that other people's models wrote: who is right, and how far speedups agree.

    python -m benchmarks.wild_corpus --out CORPUS CLONE [CLONE ...]
    rlkernel evaluate --manifest CORPUS/manifest.jsonl --out ours.jsonl --device cuda:0
    python -m benchmarks.wild_native CORPUS/manifest.jsonl --out native.jsonl --ours ours.jsonl
    python -m benchmarks.wild native.jsonl ours.jsonl
    python -m benchmarks.wild native.jsonl ours.jsonl --page docs/results/wild.md --card "NVIDIA H200"

A native run is *right* if it ended, its outputs have the reference's structure, shapes and dtypes, and all are within
KernelBench's 1e-2 or our bound. Speedups are compared where both found the candidate right, by times of the device. Several pairs
of files make one table.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlkernel.commands.native import evaluation_of
from rlkernel.evaluator.messages.native import NativeFound
from rlkernel.evaluator.native.agreement import Judged, disagreements, native_from_json, speedups, summary, summary_line, table
from rlkernel.types import Closeness, Status


def read(native: Path, ours: Path) -> list[Judged]:
    """The candidates that both files have, in the order of the first; a later row replaces an earlier one."""
    verdicts = {row["id"]: row for row in rows(ours)}
    found = {row["id"]: row for row in rows(native)}
    return [
        Judged(name, evaluation_of(verdicts[name]), _as_claimed(native_from_json(row)))
        for name, row in found.items()
        if name in verdicts
    ]


def _as_claimed(native: NativeFound) -> NativeFound:
    """With the time that events on the device gave. The referee's clock, which bounds it from below, counts the host, too, and
    many processes share the host here."""
    return replace(native, candidate_us=native.claimed_us) if native.claimed_us else native


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a result file, in their order."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def report(judged: Sequence[Judged]) -> str:
    """The table, all disagreements by cause, and the speedups, as Markdown."""
    parts = [
        *table(judged), "", *_close(judged), "", "### Disagreements", "", *disagreements(judged), "", "### Speedups", "",
        *speedups(judged), "", summary_line(summary(judged)) + ".",
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def _close(judged: Sequence[Judged]) -> list[str]:
    """How KernelBench's two tolerances and our bound count the candidates that ran, and what is accepted of those with a kernel
    whose outputs meet all of them."""
    ran = [one.native for one in judged if one.native.ended == "ran"]
    counts = Counter((native.right, native.close is Closeness.TIGHT, native.matches) for native in ran)
    right = sum(count for (right, _, _), count in counts.items() if right)
    close = sum(count for (right, close, _), count in counts.items() if right and close)
    bound = sum(count for (right, _, ours), count in counts.items() if right and ours)
    met = [
        one for one in judged if one.verdict == "right" and one.native.matches and one.evaluation.status is not Status.NO_KERNEL
    ]
    accepted = sum(one.evaluation.correct for one in met)
    share = f" ({accepted / len(met):.1%})".replace("%", " %") if met else ""
    return [
        f"Of {right} natively right candidates {close} are within 1e-4, too, and {bound} are within our bound on those inputs.",
        f"Of the {len(met)} within our bound that launch a kernel, {accepted} are accepted{share}.",
    ]


def page(judged: Sequence[Judged], card: str, commands: Sequence[str]) -> str:
    """The page of results: what was run, on what, and the report."""
    sources = Counter(one.id.partition("/")[0].replace("+", "/") for one in judged)
    listed = "\n".join(f"- `{source}`: {count}" for source, count in sources.most_common())
    ran = f"{len(judged)} candidates on one {card}, from these repositories:\n\n{listed}"
    return f"{INTRODUCTION}\n{ran}\n\n```sh\n{chr(10).join(commands)}\n```\n\n## Verdicts\n\n{report(judged)}"


INTRODUCTION = """# Other people's kernels

Kernels that public models wrote for public problems, each judged by us and run as plain Python in KernelBench's way, in a
process of its own. Nothing of them is kept here; `benchmarks/wild_corpus.py` builds the corpus. A native run is *right* if its
outputs have the reference's shapes and dtypes and are within 1e-2 of it, absolute plus relative, or within our bound, which for
bfloat16 and float8 is the wider one. Who is wrong with weights drawn from the seed gets the reference's once more.
"""
COMMANDS = (
    "python -m benchmarks.wild_corpus --out CORPUS CLONE [CLONE ...]",
    "rlkernel evaluate --manifest CORPUS/manifest.jsonl --out ours.jsonl --device cuda:0",
    "python -m benchmarks.wild_native CORPUS/manifest.jsonl --out native.jsonl --ours ours.jsonl",
    "python -m benchmarks.wild native.jsonl ours.jsonl --page docs/results/wild.md",
)
"""What makes the page."""


def main(argv: Sequence[str] | None = None) -> None:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="NATIVE OURS", help="pairs of result files")
    parser.add_argument("--page", type=Path, help="write the page of results there")
    parser.add_argument("--card", default="NVIDIA H200")
    given = parser.parse_args(argv)
    if len(given.files) % 2:
        parser.error("result files come in pairs: NATIVE OURS")
    pairs = zip(given.files[::2], given.files[1::2], strict=True)
    judged = [one for native, ours in pairs for one in read(native, ours)]
    if given.page is not None:
        given.page.write_text(page(judged, given.card, COMMANDS))
    print(report(judged), end="")


if __name__ == "__main__":
    main()
