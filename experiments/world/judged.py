"""Many candidates through the evaluator, with a ledger of what was found, so that a command that is stopped goes on."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import anyio

from envs.world.drafts import Draft
from envs.world.drafts import code as code_of
from envs.world.draw import FAMILIES
from envs.world.task import Task
from rlkernel.commands.asked import check_limit
from rlkernel.errors import UsageError
from rlkernel.evaluator.pool import Pool
from rlkernel.evaluator.version import verdict_version
from rlkernel.types import Evaluation, Timing

RUNS = Path("runs/world")
"""Where ledgers and evaluations are kept."""
AT_ONCE = 4
"""Candidates in flight per lane of the pool: enough that a lane never waits."""


class Judgeable(Protocol):
    """A candidate that can be judged, under a key that is unique in its ledger."""

    @property
    def key(self) -> str: ...

    @property
    def task(self) -> Task: ...

    @property
    def code(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Item:
    """A draft to be judged."""

    key: str
    draft: Draft

    @property
    def task(self) -> Task:
        return self.draft.task

    @property
    def code(self) -> str:
        return code_of(self.draft)


def digest(text: str) -> str:
    """12 hex digits that stand for a text in keys and names of files."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def item_of(draft: Draft, name: str = "") -> Item:
    """The draft under its task's name, a name of its own where it has one, and the digest of its code."""
    return Item(" ".join(part for part in (draft.task.name, name, digest(code_of(draft))) if part), draft)


def kept_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines, without a last one that a kill has cut off. That one is ended, so that the next line
    stands alone. Makes the file's directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if text and not text.endswith("\n"):
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")
    rows = []
    for line in text.splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


class Ledger:
    """A file with one row of JSON per judged item: its key, status, speedup and times in microseconds."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, Mapping[str, Any]] = {}
        for row in kept_rows(path):
            self.rows[row["key"]] = row

    def add(self, key: str, evaluation: Evaluation) -> None:
        """Append a row."""
        row = {
            "key": key,
            "status": str(evaluation.status),
            "detail": evaluation.detail,
            "speedup": evaluation.speedup,
            "reference_us": evaluation.reference_us,
            "candidate_us": evaluation.candidate_us,
            "timing": evaluation.timing,
        }
        self.rows[key] = row
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


async def judge(items: Iterable[Judgeable], pool: Pool, ledger: Ledger, *, until: float) -> bool:
    """Judge the items that the ledger lacks. Returns False where the monotonic clock passed `until` before all were judged."""
    missing = [item for item in items if item.key not in ledger.rows]
    limiter = anyio.CapacityLimiter(AT_ONCE * pool.jobs)
    started, done = time.monotonic(), 0

    async def one(item: Judgeable) -> None:
        nonlocal done
        async with limiter:
            if time.monotonic() >= until:
                return
            ledger.add(item.key, await pool.evaluate(item.task.problem(), item.code))
            done += 1
            if done % 200 == 0:
                rate = done / (time.monotonic() - started)
                print(f"{done} of {len(missing)} judged, {rate:.1f} per second", flush=True)

    async with anyio.create_task_group() as group:
        for item in missing:
            group.start_soon(one, item)
    return done == len(missing)


def timing_of(pool: Pool) -> Timing:
    """How the pool times candidates."""
    return "modelled" if pool.device == "cpu" else "measured"


def card_of(pool: Pool) -> str:
    """The model of the card on which a pool measures, or for which it models."""
    return pool.runners[0].gpu.name if pool.runners else pool.profile.name


def open_ledger(name: str, pool: Pool) -> Ledger:
    """The ledger of a command, one for each model of card, version and setting of the evaluator. Another card of the same model
    goes on with it; its own profile is no setting."""
    settings = {field: value for field, value in asdict(pool.config).items() if field != "profile"}
    setting = digest(f"{card_of(pool)} {settings!r} {verdict_version()}")
    return Ledger(RUNS / f"{name}_{timing_of(pool)}_{setting}.jsonl")


def families_of(named: Sequence[str]) -> tuple[str, ...]:
    """The families that a command is about: those that it names, or all. Raises UsageError for one that is not known."""
    for name in named:
        if name not in FAMILIES:
            raise UsageError(f"--families {name}: choose from {', '.join(FAMILIES)}")
    return tuple(named) or tuple(FAMILIES)


def deadline(limit_seconds: float | None) -> float:
    """The monotonic time at which a command stops; infinity without a limit. Raises UsageError for a limit that is none."""
    check_limit(limit_seconds)
    return float("inf") if limit_seconds is None else time.monotonic() + limit_seconds
