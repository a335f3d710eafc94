"""How much of a candidate's work its own kernels do (arXiv 2602.05885), from the facts of an evaluation."""

from __future__ import annotations

from typing import Literal

from rlkernel.types import Evaluation

Kind = Literal["time", "count"]


def coverage_of(evaluation: Evaluation, kind: Kind) -> float:
    """The share of a candidate's work that its own live Triton launches do, 0 to 1.

    `time` divides their device time by that of the forward. `count` divides their number by the number of launches and operators
    of the forward. Raises ValueError for an evaluation that does not know the share, and for another kind.
    """
    if kind == "time" and evaluation.coverage is not None:
        return evaluation.coverage
    steps = sum(launch.calls for launch in evaluation.launches) + sum(op.calls for op in evaluation.ops)
    if kind == "count" and steps > 0:
        return sum(launch.calls for launch in evaluation.launches if launch.live) / steps
    if kind not in ("time", "count"):
        raise ValueError(f"coverage is {kind!r}: use 'time' or 'count'")
    raise ValueError(f"an evaluation without {kind} coverage cannot be rewarded or rejected by it: the evaluator must report one")
