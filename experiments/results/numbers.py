"""Writes what `docs/results` keeps of runs: every measurement that pages, verdicts and figures are made of, and what ran.

`experiments.checked_in` reads it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments import checked_in
from experiments.results.pages import Found
from rlkernel.metrics import FAST_THRESHOLDS
from rlkernel.report.summary import RunRecord, common_timing
from rlkernel.runs.outcomes import KEYS, OPTIONAL_KEYS

TRAIN_KEYS = ("reward", "grad_norm", "entropy", "mismatch", "kept_turns", "effective_tokens", "loss", "seconds_wall")
COLUMNS = (*KEYS, *OPTIONAL_KEYS, *(f"apparent_fast_{p:g}" for p in FAST_THRESHOLDS))
"""The numbers of a validation that are kept, of the whole and of each problem, where it has them."""


def write_numbers(one: Found, directory: Path) -> None:
    """Write what `experiments.checked_in` reads: every measurement, and what ran."""
    directory.mkdir(parents=True, exist_ok=True)
    _dump(numbers(one), directory)
    manifests = [manifest(run) for run in one.runs]
    (directory / checked_in.MANIFESTS).write_text(json.dumps(manifests, indent=1) + "\n", encoding="utf-8")


def numbers(one: Found) -> dict[str, Any]:
    """Everything that verdicts, tables and the figure are made of."""
    return {
        "timing": common_timing(one.runs),
        "preset": one.preset,
        "docstring": one.story.docstring,
        "runs": [
            {
                "arm": run.arm,
                "seed": run.seed,
                "validation": _table(run.validation, _recorded(run)),
                "training": _table(run.training, TRAIN_KEYS),
                "problems": {
                    str(step): {name: [_short(row.get(key)) for key in COLUMNS] for name, row in problems.items()}
                    for step, problems in run.outcomes.items()
                },
            }
            for run in one.runs
        ],
        "problems_columns": list(COLUMNS),
        "coverage_bands": one.bands,
    }


def write_verdicts(one: Found, directory: Path) -> None:
    """Add what today's rule says of an experiment's claims to its measurements, in place of what an earlier one said."""
    claims = [
        {**asdict(judged.claim), "verdict": str(judged.verdict), "reason": judged.reason, "adjusted_p": judged.adjusted_p}
        | {"difference": None if judged.difference is None else asdict(judged.difference)}
        for judged in one.judged
    ]
    measured = json.loads((directory / checked_in.NUMBERS).read_text(encoding="utf-8"))
    _dump({**measured, "claims": claims}, directory)


def _dump(found: Mapping[str, Any], directory: Path) -> None:
    (directory / checked_in.NUMBERS).write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")


def _recorded(run: RunRecord) -> list[str]:
    """The keys that all validations of a run have, of those that are kept."""
    return [key for key in (*COLUMNS, "seconds_wall") if all(key in row for row in run.validation)]


def _table(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> dict[str, list[Any]]:
    """A table as its columns by name, `step` first."""
    return {key: [_short(row.get(key)) for row in rows] for key in ("step", *keys)} if rows else {}


def _short(value: Any) -> Any:
    return round(value, 5) if isinstance(value, float) else value


def manifest(run: RunRecord) -> dict[str, Any]:
    """The manifest of a run, without the paths of the machine and with a hash in place of the list of problems; one that was kept
    so stays as it is."""
    found: dict[str, Any] = _without_paths(run.manifest)
    if isinstance(run.manifest["run"]["problems"], Mapping):
        return found
    problems = json.dumps(run.manifest["run"]["problems"], sort_keys=True).encode()
    short = {"count": len(run.manifest["run"]["problems"]), "sha256": hashlib.sha256(problems).hexdigest()[:16]}
    return {**found, "run": {**found["run"], "problems": short}}


def _without_paths(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_paths(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_paths(item) for item in value]
    if isinstance(value, str) and value.startswith("/"):
        return "/".join(Path(value).parts[-3:])
    return value
