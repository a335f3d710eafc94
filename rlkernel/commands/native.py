"""What commands do with native runs: whether they can be had, and how one is told beside an evaluation."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlkernel.errors import BrokenReference, EvaluatorFailed, UsageError
from rlkernel.evaluator.messages.native import NativeFound, Way
from rlkernel.evaluator.native.agreement import Judged, native_from_json
from rlkernel.evaluator.pool import Pool
from rlkernel.evaluator.ray.pool import RayPool
from rlkernel.training.placement import RAY
from rlkernel.types import Evaluation, Problem


def check_native(device: str, cards: bool, *, native: bool, untraceable: str, flag: str = "--native") -> None:
    """Whether native runs can be had on `device`, if they are asked for. Raises UsageError."""
    asked = flag if native else "--untraceable native" if untraceable == "native" else None
    if asked is None:
        return
    if native and device == RAY:
        raise UsageError(f"{flag}: candidates run natively on this machine's GPUs only: leave --device ray out")
    if not cards and device != RAY:
        raise UsageError(f"{asked}: Triton kernels run natively on a GPU only: take a machine that has one, or leave it out")


async def audited(pool: Pool | RayPool, problem: Problem, code: str, evaluation: Evaluation) -> NativeFound | None:
    """A native run, in KernelBench's way, of a candidate that was accepted as traced; None for any other, and where our own side
    fails at it, which is told on standard error."""
    if not evaluation.correct or evaluation.trust == "native":
        return None
    assert isinstance(pool, Pool)
    try:
        return await pool.run_natively(problem, code, Way.KERNELBENCH)
    except (BrokenReference, EvaluatorFailed) as error:
        print(f"not run natively: {error}", file=sys.stderr, flush=True)
        return None


def evaluation_of(row: Mapping[str, Any]) -> Evaluation:
    """The evaluation of a line of results, without what such a line has besides."""
    return Evaluation.from_json({key: value for key, value in row.items() if key not in ("native", "texts", "settings")})


def judged_rows(path: Path) -> list[Judged]:
    """The rows of a results file that have a native run."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        Judged(row["id"], evaluation_of(row), found)
        for row in rows
        if "native" in row and (found := native_from_json(row["native"]))
    ]


def told(judged: Judged) -> str:
    """A native run as a line for people."""
    native = judged.native
    if judged.verdict != "right":
        return f"natively {judged.verdict}: {native.detail}"
    close = {True: "agrees", False: "DIFFERS", None: "cannot be compared"}[judged.close]
    return (
        f"natively right: speedup {native.speedup or 0:.2f}x ({native.reference_us:.1f} us -> {native.candidate_us:.1f} us), "
        f"which {close}"
    )
