"""What a verdict says that stands although sizes at which it might be another one could not be judged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from rlkernel.evaluator.judging.verdict import MAX_DETAIL
from rlkernel.types import Evaluation

MOST_SIZES = 4
"""Sizes that are told by name."""


class Undecided(StrEnum):
    """What could not be judged, and what decides it."""

    LONGER = (
        "what is longer at full shape could not be judged; judge it on a GPU, or give larger sizes as SMALL in the problem file"
    )
    OWN = (
        "the sizes that it may be made for could not be judged; judge it on a GPU, give larger sizes as SMALL in the problem "
        "file, or write sizes as arguments (x.shape)"
    )
    WORK = (
        "further looks at other sizes would take too much work together; judge it on a GPU, or give sizes as SMALL in the "
        "problem file"
    )
    TIME = "nothing could be judged in time; judge it on a GPU, or give smaller sizes as SMALL in the problem file"


def is_undecided(detail: str) -> bool:
    """Whether the detail of a verdict says that sizes could not be judged at which it might be another one.

    >>> is_undecided(undecided("", {"ROWS": 16}, Undecided.LONGER)), is_undecided("kernel f failed")
    (True, False)
    """
    return why_undecided(detail) is not None


def why_undecided(detail: str) -> Undecided | None:
    """What the detail of a verdict says could not be judged; None of one that was decided."""
    return next((why for why in Undecided if detail.endswith(f" alone: {why}")), None)


def undecided(detail: str, sizes: Mapping[str, Any], why: Undecided) -> str:
    """The detail of a verdict that no look at other sizes could decide: what was found, at which sizes, and what is open.

    >>> undecided("", {"ROWS": 16, "COLS": 96}, Undecided.TIME)[:46]
    'judged at ROWS = 16, COLS = 96 alone: nothing '
    >>> undecided("kernel f failed", {}, Undecided.OWN)[:57]
    'kernel f failed; judged at the sizes of its file alone: t'
    """
    shown = compared_at(dict(list(sizes.items())[:MOST_SIZES])) + (", ..." if len(sizes) > MOST_SIZES else "")
    line = f"judged at {shown[: MAX_DETAIL // 4] or 'the sizes of its file'} alone: {why}"
    return f"{detail[: MAX_DETAIL - len(line) - 2]}; {line}" if detail else line


def told(evaluation: Evaluation, why: Evaluation | Undecided | None) -> Evaluation:
    """An evaluation with what is undecided of it in its detail."""
    if not isinstance(why, Undecided):
        return evaluation
    return replace(evaluation, detail=undecided(evaluation.detail, evaluation.sizes, why))


def compared_at(sizes: Mapping[str, Any]) -> str:
    """The sizes of a verdict for people. A literal of `get_inputs` has the name that `judging.sizes.made_inputs` gives it.

    >>> compared_at({"ROWS": 16, "SIZE_4096": 256})
    'ROWS = 16, 4096 became 256 in get_inputs'
    """
    literals = {name: name.removeprefix("SIZE_") for name in sizes if re.fullmatch(r"SIZE_\d+", name)}
    parts = (
        f"{literals[name]} became {value} in get_inputs" if name in literals else f"{name} = {value}"
        for name, value in sizes.items()
    )
    return ", ".join(parts)
