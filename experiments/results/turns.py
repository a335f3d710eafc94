"""A turn of a trajectory on a page: its verdict, what the policy wrote, and what the evaluator said."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rlkernel.runs.texts import cut

TEXT = 4_000
"""The most characters of a text that are kept."""


def shortened(number: int, turn: Mapping[str, Any]) -> dict[str, Any]:
    """What a page shows of a turn of transcripts.jsonl, the `number`th of its trajectory."""
    return {
        "number": number,
        "answer": cut(turn.get("completion") or turn["code"] or "", TEXT),
        "feedback": cut(turn.get("feedback", ""), TEXT),
        "reward": turn["reward"],
        "status": turn["evaluation"]["status"],
        "speedup": turn["evaluation"]["speedup"],
        "coverage": turn["evaluation"]["coverage"],
    }


def turn_lines(turn: Mapping[str, Any]) -> list[str]:
    """A shortened turn in Markdown."""
    facts = [turn["status"], f"reward {turn['reward']:.2f}"]
    facts += [f"speedup {turn['speedup']:.2f}"] if turn["speedup"] else []
    facts += [f"coverage {100 * turn['coverage']:.0f} %"] if turn["coverage"] is not None else []
    lines = [f"**Turn {turn['number']}**: {', '.join(facts)}.", "", *_block(turn["answer"])]
    return [*lines, "The evaluator said:", "", *_block(turn["feedback"])] if turn["feedback"] else lines


def _block(text: str) -> list[str]:
    """A text as it is, in a block whose fence is longer than any in the text."""
    fence = "`" * max(4, 1 + max(map(len, re.findall("`+", text)), default=0))
    return [f"{fence}text", text.strip("\n"), fence, ""]
