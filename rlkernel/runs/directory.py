"""The directory of one run: what is in it, where to go on, and whom it belongs to.

manifest.json       what ran: the dumped Run, its fingerprint, digests of code, commit, versions, machine; `finished` at the end
metrics.jsonl       one row per step and split
transcripts.jsonl   a sample of trajectories
outcomes.jsonl      per problem, one row per validation
checkpoints/        checkpoint-<step>/, see `rlkernel.runs.checkpoints`
wandb/              Weights & Biases
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rlkernel.config import Run, fingerprint, to_json
from rlkernel.errors import UsageError
from rlkernel.method_code import code_of
from rlkernel.runs import checkpoints
from rlkernel.runs.code import changed, digests, warning
from rlkernel.runs.durable import replace_text, sync
from rlkernel.runs.weights import weights_digest

MANIFEST, METRICS, TRANSCRIPTS, OUTCOMES = "manifest.json", "metrics.jsonl", "transcripts.jsonl", "outcomes.jsonl"
ROWS = (METRICS, TRANSCRIPTS, OUTCOMES)
LOCK = "lock"
"""The file by which a process holds a directory."""
HELD_SECONDS = 3.0
"""How long a directory that another process holds is waited for: after a kill, the last of a command's processes ends in that."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where a run begins: after `step` optimiser steps, from `checkpoint` unless it is None. told: a line per damaged checkpoint
    that was passed over, and one where code has changed."""

    step: int
    checkpoint: Path | None
    finished: bool
    told: tuple[str, ...] = ()


def make(directory: Path) -> None:
    """Make a directory where there is none. Raises UsageError where that cannot be."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{directory} cannot be made ({error.strerror}): choose another directory with --out") from error


@contextmanager
def owned(directory: Path) -> Iterator[None]:
    """Hold the directory. Raises UsageError when another process does, and goes on to; the hold ends with the process, however
    it ends."""
    make(directory)
    with (directory / LOCK).open("w") as lock:
        until = time.monotonic() + HELD_SECONDS
        while not _lock(lock):
            if time.monotonic() >= until:
                raise UsageError(f"{directory} is in use by another process: wait for it, or choose another with --out")
            time.sleep(0.05)
        yield


def _lock(file: IO[str]) -> bool:
    """Lock a file unless another process has; returns whether that was done."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def check_free(directory: Path, run: Run | None = None) -> None:
    """Raise UsageError where another process holds the directory now, before anything is loaded or built for a run in it; makes
    nothing. run: a run that is finished there needs no hold."""
    if (directory / LOCK).exists() and (run is None or not finished(directory, run)):
        with owned(directory):
            return


def begin(directory: Path, run: Run) -> Start:
    """Make or check the manifest, note the start in it, and drop what was logged after the newest intact checkpoint.

    Raises UsageError when the directory holds another run, naming what differs.
    """
    if finished(directory, run):
        return Start(run.steps, None, finished=True)
    if read_manifest(directory) is None:
        write_manifest(directory, new_manifest(run))
    return go_on(directory)


def go_on(directory: Path) -> Start:
    """Where training in a directory goes on: after its newest intact checkpoint. What was logged after it is dropped, and the
    start is noted in the manifest, with the files whose code is another than at the first start."""
    step, checkpoint, told = checkpoints.newest(directory / "checkpoints")
    for name in ROWS:
        # Without a checkpoint, even the measurement before the first step is made again.
        _keep_rows(directory / name, -1 if checkpoint is None else step)
    manifest = read_manifest(directory) or {}
    files = changed(manifest.get("training_code"))
    noted = {"at": _now(), "step": step, "machine": _machine(), "changed_code": files}
    update_manifest(directory, starts=[*manifest.get("starts", ()), noted])
    if files:
        told = (*told, warning(files, directory, goes_on=True))
    return Start(step, checkpoint, finished=False, told=told)


def sync_rows(directory: Path) -> None:
    """Wait until the rows are on the disk, so that a checkpoint which is written after them has them all."""
    for name in ROWS:
        if (directory / name).exists():
            sync(directory / name)
    sync(directory)


def finished(directory: Path, run: Run) -> bool:
    """Whether the directory holds this run, finished. Raises UsageError when it holds another run, naming what differs, or one
    that `began_elsewhere`."""
    manifest = read_manifest(directory)
    if manifest is None:
        return False
    if manifest["fingerprint"] != fingerprint(run):
        raise UsageError(
            f"{directory} holds another run ({_difference(manifest['run'], to_json(run))}): "
            "choose another directory with --out, or delete this one to start over"
        )
    if began_elsewhere(directory, run):
        raise UsageError(
            f"{directory} holds a run that began from other weights than those in {run.model} now: "
            "choose another directory with --out, or delete this one to start over"
        )
    return "finished" in manifest


def began_elsewhere(directory: Path, run: Run) -> bool:
    """Whether the run in a directory began from weights that have been made anew since. Weights that are gone tell nothing."""
    began = (read_manifest(directory) or {}).get("policy")
    return began is not None and weights_digest(run.model) not in (None, began)


def finish(directory: Path) -> None:
    """Mark the run as finished, so that it is skipped from now on."""
    update_manifest(directory, finished=_now())


def new_manifest(run: Run) -> dict[str, Any]:
    """What is known before the first step. `timing` is filled in by the first verdicts, `starts` by `go_on`."""
    return {
        "arm": run.name,
        "seed": run.seed,
        "fingerprint": fingerprint(run),
        "code": code_of(run),
        "training_code": digests(),
        "run": to_json(run),
        "policy": weights_digest(run.model),
        "timing": None,
        **provenance(),
        "wandb_id": os.urandom(4).hex(),
    }


def provenance() -> dict[str, Any]:
    """When a run was started, from which commit, with which versions and on which machine."""
    return {
        "started": _now(),
        "git": _git(Path(__file__).parent),
        "versions": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in ("torch", "triton", "trl", "transformers", "anyio", "numpy")},
        },
        "machine": _machine(),
    }


def read_manifest(directory: Path) -> dict[str, Any] | None:
    """The manifest, or None when there is none yet. Raises UsageError for a file that is not a manifest."""
    path = directory / MANIFEST
    if not path.exists():
        return None
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        manifest["fingerprint"], manifest["run"]
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"{path} is not a manifest of a run: delete the directory to start over") from None
    return manifest


def update_manifest(directory: Path, **changes: Any) -> dict[str, Any]:
    """Write the manifest with some of its entries changed, and return it."""
    manifest = read_manifest(directory)
    assert manifest is not None
    write_manifest(directory, manifest | changes)
    return manifest | changes


def write_manifest(directory: Path, manifest: dict[str, Any]) -> None:
    replace_text(directory / MANIFEST, json.dumps(manifest, indent=2) + "\n")


def _keep_rows(path: Path, step: int) -> None:
    """Keep the rows up to `step`; a last line cut off by a kill goes too."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line + "\n")
        except ValueError:
            continue
    replace_text(path, "".join(kept))


def _difference(there: dict[str, Any], here: dict[str, Any]) -> str:
    """The names of the fields that differ, with the values of the first of them."""
    new = [name for name in here if name not in there]
    if new:
        return f"made by an earlier version, without Run.{', Run.'.join(new)}"
    names = [name for name in here if there[name] != here[name]]
    if not names:
        return "made by another version"
    name = names[0]
    if name == "problems":
        shown = "other problems"
    else:
        shown = f"{name} is {json.dumps(there.get(name))} there and {json.dumps(here[name])} here"
    return shown + (f"; so do {', '.join(names[1:])}" if names[1:] else "")


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def _git(directory: Path) -> dict[str, Any] | None:
    """The commit of a checkout, and whether it was changed; None outside a checkout."""
    try:
        commit = subprocess.run(["git", "-C", directory, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        status = subprocess.run(["git", "-C", directory, "status", "--porcelain"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return {"commit": commit.stdout.strip(), "dirty": bool(status.stdout.strip())}


def _machine() -> dict[str, Any]:
    import torch

    cards = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "system": platform.platform(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory,
        "gpus": [card.name for card in cards],
        "cards": [str(card.uuid) for card in cards],
    }
