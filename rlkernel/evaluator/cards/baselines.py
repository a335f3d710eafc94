"""The device times of references, stored with where they come from. Each is one JSON line, appended; the last of a key counts.

A key is the problem's source and everything of the machine that decides a time: the very card, its driver, torch, triton and the
precision. Another machine's timings are therefore absent here, never used in place of a measurement.
"""

from __future__ import annotations

import hashlib
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rlkernel.evaluator.cards.gpus import Gpu, Reading
from rlkernel.evaluator.shared_rows import SharedRows
from rlkernel.evaluator.version import baseline_version
from rlkernel.types import Precision, Problem

DRIFT = 0.03
"""The relative change up to which a reference has not drifted, however narrow the intervals."""
COLUMNS = ("problem", "GPU", "eager us", "+-", "compiled us", "trials", "precision", "SM MHz", "torch", "triton", "when", "rows")
"""The headings of the table that `BaselineStore.describe` gives."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where, with what and when a time was measured."""

    gpu_name: str
    gpu_uuid: str
    driver: str
    torch: str
    triton: str
    python: str
    precision: Precision
    sm_mhz: int | None
    memory_mhz: int | None
    when: str
    """The time of the measurement, in UTC and as ISO 8601 writes it."""
    evaluator: str
    """What `rlkernel.evaluator.version.baseline_version()` gave."""

    @staticmethod
    def here(gpu: Gpu, reading: Reading, precision: Precision) -> Provenance:
        """Return the provenance of a measurement that this process made when it took `reading` of the card."""
        return Provenance(
            gpu_name=gpu.name,
            gpu_uuid=gpu.uuid,
            driver=gpu.driver,
            torch=version("torch"),
            triton=version("triton"),
            python=platform.python_version(),
            precision=precision,
            sm_mhz=reading.sm_mhz,
            memory_mhz=reading.memory_mhz,
            when=datetime.fromtimestamp(reading.time, UTC).isoformat(timespec="seconds"),
            evaluator=baseline_version(),
        )


@dataclass(frozen=True, slots=True)
class Baseline:
    """One reference's device time in microseconds: the mean of the undisturbed trials and its confidence interval.

    Raises ValueError for times out of order.
    """

    eager_us: float
    eager_low_us: float
    eager_high_us: float
    compiled_us: float | None
    """The time under torch.compile; None if that was not asked for, or if the reference did not compile."""
    trials: int
    provenance: Provenance

    def __post_init__(self) -> None:
        _check(self.eager_us, self.eager_low_us, self.eager_high_us)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Baseline:
        """Read what `asdict` made. Raises TypeError or KeyError for other fields, ValueError for times out of order."""
        return Baseline(**{**data, "provenance": Provenance(**data["provenance"])})


def _check(us: float, low: float, high: float) -> None:
    if not 0 < low <= us <= high < float("inf"):
        raise ValueError(f"a time of {us} us with the interval {low} to {high} us: expected 0 < low <= time <= high")


def drift(stored: Baseline, eager_us_now: float, low: float, high: float) -> float | None:
    """Return `eager_us_now / stored.eager_us - 1` if the reference's time has really changed, else None.

    It has really changed if the change is over 3 % (`DRIFT`), and if [low, high] us, the interval of the new time, lies wholly
    outside the stored interval. 100 us (99 to 101) against 104 us (103 to 105) gives 0.04; against 104 us (100 to 108) None.
    The caller measures again and puts the result, so that the store keeps both with their dates. Raises ValueError for times
    out of order. (ours)
    """
    _check(eager_us_now, low, high)
    relative = eager_us_now / stored.eager_us - 1
    apart = low > stored.eager_high_us or high < stored.eager_low_us
    return relative if apart and abs(relative) > DRIFT else None


Key = tuple[str, str, str, str, str, str, str]


def source_hash(problem: Problem) -> str:
    """Return the 16 hex digits that stand for the problem's source in a key."""
    return hashlib.sha256(problem.source.encode()).hexdigest()[:16]


def _key(problem_hash: str, where: Provenance) -> Key:
    return (problem_hash, where.gpu_name, where.gpu_uuid, where.driver, where.torch, where.triton, str(where.precision))


class BaselineStore:
    """Baselines in memory, and in the file `path` if one is given. A torn or damaged line is skipped.

    What another process appends later is seen by the next store that opens the file.
    """

    def __init__(self, path: Path | None) -> None:
        self._file = SharedRows(path)
        self._rows: dict[Key, list[Baseline]] = {}
        self._names: dict[Key, str] = {}
        for row in self._file.unread():
            try:
                self._add(str(row["problem"]), str(row["source"]), Baseline.from_json(row["baseline"]))
            except (ValueError, KeyError, TypeError):
                continue

    def __len__(self) -> int:
        """Return the number of keys, not of rows."""
        return len(self._rows)

    def _add(self, name: str, problem_hash: str, baseline: Baseline) -> None:
        key = _key(problem_hash, baseline.provenance)
        self._rows.setdefault(key, []).append(baseline)
        self._names[key] = name

    def get(self, problem: Problem, here: Provenance) -> Baseline | None:
        """Return the latest baseline of `problem` on this card with these versions; clocks, dates and python do not matter."""
        rows = self._rows.get(_key(source_hash(problem), here))
        return None if rows is None else rows[-1]

    def history(self, problem: Problem, here: Provenance) -> tuple[Baseline, ...]:
        """Return all baselines under the key of `get`, oldest first. There is more than one if the reference drifted."""
        return tuple(self._rows.get(_key(source_hash(problem), here), ()))

    def put(self, problem: Problem, baseline: Baseline) -> None:
        """Keep a new baseline of `problem`, and append it to the file."""
        self._add(problem.name, source_hash(problem), baseline)
        self._file.append({"problem": problem.name, "source": source_hash(problem), "baseline": asdict(baseline)})

    def describe(self) -> list[tuple[str, ...]]:
        """Return one row per key, for a table with the headings `COLUMNS`, ordered by problem and then by GPU."""
        return sorted(_describe(self._names[key], rows) for key, rows in self._rows.items())


def _describe(name: str, rows: list[Baseline]) -> tuple[str, ...]:
    last, where = rows[-1], rows[-1].provenance
    half = max(last.eager_high_us - last.eager_us, last.eager_us - last.eager_low_us) / last.eager_us
    return (
        name,
        f"{where.gpu_name} {where.gpu_uuid[:12]}",
        f"{last.eager_us:.2f}",
        f"{100 * half:.1f} %",
        "-" if last.compiled_us is None else f"{last.compiled_us:.2f}",
        str(last.trials),
        str(where.precision),
        "-" if where.sm_mhz is None else str(where.sm_mhz),
        where.torch,
        where.triton,
        where.when,
        str(len(rows)),
    )
