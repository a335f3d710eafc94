"""Packs every turn of runs or of a benchmark into a page, where `viewer.js` lists, filters and compares them.

An index says which trajectories and turns there are, with the numbers that the filters need. Every distinct text is stored once,
in blocks that the browser unpacks when one of their texts is shown. Index and blocks are zlib streams in base64, whose alphabet
has no character that could end an element: nothing that a model wrote is ever markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlkernel.metrics import HACKS, LAZY_COVERAGE
from rlkernel.runs.texts import TEXT_LIMITS, answer_parts, cut
from rlkernel.types import Status

LIMIT = 8_000_000
"""The most bytes of index and blocks in a page."""
CODE = 10
"""Code may be this many times as long as other texts, since it is what a reader looks for."""
STEPS = 16
"""The number of steps of a candidate, and of its reference, that are kept: the costliest."""
BLOCK = 400_000
"""The characters of text in a block, before it is packed."""
OWN_COLUMNS = ("status", "coverage", "correct")
"""The fields of an evaluation that are in the index, or known from it."""
SCRIPTS = (
    *("tables", "chart", "viewer_data", "viewer_search", "viewer_list", "viewer_problems"),
    *("viewer_notes", "viewer_code", "viewer_beside", "viewer_turn", "viewer"),
)
"""The parts of the page's script, in the order in which they are joined."""


@dataclass(frozen=True, slots=True)
class Source:
    """A run, or a benchmark, whose turns are shown."""

    name: str
    """The name that links to its turns are made of; no two sources have the same."""
    arm: str
    seed: int
    timing: str | None
    trajectories: Sequence[Mapping[str, Any]]
    """The trajectories, as lines of transcripts.jsonl have them."""


@dataclass(frozen=True, slots=True)
class ViewerContent:
    """Everything that the viewer of a page shows."""

    sources: Sequence[Source]
    measured: Mapping[str, Mapping[str, Sequence[float]]]
    """The shares arm -> problem -> [Fast@1, Fast@1.2]; problems that were not measured are not there."""
    benchmark: bool = False
    """Whether the trajectories are a benchmark's: then a step is the number of a trajectory, from 1, and splits say
    nothing."""


@dataclass(frozen=True, slots=True)
class PackedContent:
    """The index and the blocks that a page embeds."""

    index: str
    blocks: tuple[str, ...]
    turns: int
    kept: int
    """The number of turns that are in the page."""
    text_limit: int

    @property
    def size(self) -> int:
        """The bytes of index and blocks."""
        return len(self.index) + sum(map(len, self.blocks))

    def note(self) -> str:
        """Say what was left out; empty where everything is there."""
        left_out = f"{self.kept} of {self.turns} turns, evenly chosen; " if self.kept < self.turns else ""
        cut = f"texts cut at {self.text_limit} characters, code at {_code_limit(self.text_limit)}"
        cut = cut if self.text_limit < TEXT_LIMITS[0] else ""
        return (left_out + cut).removesuffix("; ")


@dataclass(frozen=True, slots=True)
class PlacedTrajectory:
    """A trajectory, and the place where it stands."""

    run: int
    """The position of its source, from 0."""
    line: int
    """The line in the source, from 1."""
    row: Mapping[str, Any]


@dataclass(slots=True)
class DistinctTexts:
    """Distinct texts, numbered in the order in which they were first asked for, so that those of one trajectory are
    neighbours."""

    limit: int
    _ids: dict[str, int] = field(default_factory=dict)

    def __call__(self, text: str) -> int:
        """The number of a text, cut to the limit."""
        return self.whole(cut(text, self.limit))

    def code(self, text: str) -> int:
        """The number of a piece of code, cut to the limit of code."""
        return self.whole(cut(text, _code_limit(self.limit)))

    def whole(self, text: str) -> int:
        """The number of a text that is not cut."""
        return self._ids.setdefault(text, len(self._ids))

    def blocks(self) -> Iterable[list[str]]:
        """The texts in the order of their numbers, in blocks of about `BLOCK` characters."""
        block: list[str] = []
        size = 0
        for text in self._ids:
            block.append(text)
            size += len(text)
            if size > BLOCK:
                yield block
                block, size = [], 0
        if block:
            yield block


def _code_limit(text_limit: int) -> int:
    return min(CODE * text_limit, TEXT_LIMITS[0])


def pack(content: ViewerContent, limit: int = LIMIT) -> PackedContent:
    """Pack what fits into `limit` bytes: with shorter texts where it is too much, then with every second trajectory."""
    numbered = [enumerate(source.trajectories, start=1) for source in content.sources]
    everything = [PlacedTrajectory(i, line, row) for i, rows in enumerate(numbered) for line, row in rows]
    # Neighbours on one problem repeat each other's texts, which the packing makes use of.
    everything.sort(key=lambda found: (found.row["problem"], found.run, found.line))
    total = sum(len(found.row["turns"]) for found in everything)
    for text_limit in TEXT_LIMITS:
        packed = _pack(content, everything, text_limit, total)
        if packed.size <= limit:
            return packed
    while packed.size > limit and len(everything) > 1:
        everything = everything[::2]
        packed = _pack(content, everything, TEXT_LIMITS[-1], total)
    return packed


def _pack(content: ViewerContent, everything: Sequence[PlacedTrajectory], text_limit: int, total: int) -> PackedContent:
    # What was measured is there without a kept turn, too.
    problems = sorted({found.row["problem"] for found in everything}.union(*content.measured.values()))
    texts = DistinctTexts(text_limit)
    position = {name: i for i, name in enumerate(problems)}
    rows = [_row(found, position, texts) for found in everything]
    blocks = list(texts.blocks())
    kept = sum(len(found.row["turns"]) for found in everything)
    packed = tuple(map(_squeeze, blocks))
    index = {
        "benchmark": content.benchmark,
        "runs": [{"name": s.name, "arm": s.arm, "seed": s.seed, "timing": s.timing} for s in content.sources],
        "problems": problems,
        "statuses": [str(status) for status in Status],
        "hacks": sorted(map(str, HACKS)),
        "lazy": LAZY_COVERAGE,
        "trajectories": rows,
        "firsts": [sum(map(len, blocks[:i])) for i in range(len(blocks))],
        "measured": {arm: [_shares(known.get(name)) for name in problems] for arm, known in content.measured.items()},
    }
    return PackedContent(_squeeze(index), packed, total, kept, text_limit)


def _shares(values: Sequence[float] | None) -> list[float | None] | None:
    return None if values is None else [_short(value) for value in values]


def _row(found: PlacedTrajectory, position: Mapping[str, int], texts: DistinctTexts) -> list[Any]:
    """A trajectory as the script reads it: [run, line, validation?, step, problem, prompt, turns]."""
    row = found.row
    prompt = texts(row["prompt"])
    turns = [_turn(turn, texts) for turn in row["turns"]]
    return [found.run, found.line, int(row["split"] == "validation"), row["step"], position[row["problem"]], prompt, turns]


def _turn(turn: Mapping[str, Any], texts: DistinctTexts) -> list[Any]:
    """A turn as the script reads it: [status, speedup, coverage, reward, and the numbers of the texts before the code, of the
    code (-1 for none), after it, of the feedback, and of the facts]."""
    facts = turn["evaluation"]
    before, code, after = answer_parts(turn["completion"], turn["code"])
    shown = {key: _fact(value, texts.limit) for key, value in facts.items() if key not in OWN_COLUMNS and value not in (None, "")}
    return [
        list(Status).index(Status(facts["status"])),
        _short(facts["speedup"]),
        _short(facts["coverage"]),
        _short(turn["reward"]),
        texts(before),
        -1 if code is None else texts.code(code),
        texts(after),
        texts(turn["feedback"]),
        texts.whole(json.dumps({**shown, "stop": turn["stop"], **turn.get("more", {})})),
    ]


def _fact(value: Any, limit: int) -> Any:
    """Bound a field of an evaluation: names of kernels and details are what a model wrote."""
    if isinstance(value, str):
        return cut(value, limit)
    if isinstance(value, list):
        steps = sorted(value, key=lambda step: -step["us"])[:STEPS]
        return [{key: _fact(item, TEXT_LIMITS[-1]) for key, item in step.items()} for step in steps]
    return finite(value)


def _short(value: float | None) -> float | None:
    """Round to four digits, which are enough to filter by; None for what is no finite number.

    >>> _short(3.9993220436983887), _short(None), _short(float("nan"))
    (3.999, None, None)
    """
    return None if value is None or not math.isfinite(value) else float(f"{value:.4g}")


def finite(value: Any) -> Any:
    """Turn infinity and NaN into text: Python writes them into JSON, where browsers do not read them.

    >>> finite({"max_error": float("inf"), "ops": [{"us": 1.5}]})
    {'max_error': 'inf', 'ops': [{'us': 1.5}]}
    """
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _squeeze(value: Any) -> str:
    return base64.b64encode(zlib.compress(json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii"), 6)).decode(
        "ascii"
    )


def script() -> tuple[str, str]:
    """The page's only script, and its hash for the content security policy, which lets no other script run."""
    parts = "\n".join(Path(__file__).with_name(f"{part}.js").read_text(encoding="utf-8") for part in SCRIPTS)
    text = f'"use strict";\n(() => {{\n{parts}}})();\n'
    return text, "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
