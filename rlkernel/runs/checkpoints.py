"""The checkpoints of a run: when one is complete, whether it is still as it was written, and which one a run goes on from.

checkpoint-<step>/contents.json     the size and the checksum of each of its files
checkpoint-<step>/complete          written last, when all of the above is on the disk
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlkernel.errors import FULL, UsageError, disk_full
from rlkernel.runs.durable import replace_text, sync

COMPLETE = "complete"
"""A checkpoint without this file was interrupted while it was written."""
CONTENTS = "contents.json"
"""What a checkpoint's files were when it was complete. Checkpoints of earlier versions have none, and are taken as they are."""
CHUNK, PROBE = 1 << 24, 1 << 20


def seal(checkpoint: Path) -> None:
    """Mark a checkpoint as complete, once all of its files and their names are on the disk."""
    files = list(_files(checkpoint))
    for path in files:
        sync(path)
    replace_text(checkpoint / CONTENTS, json.dumps({str(path.relative_to(checkpoint)): _content(path) for path in files}) + "\n")
    (checkpoint / COMPLETE).touch()
    for directory in (checkpoint, checkpoint.parent):
        sync(directory)


def damage(checkpoint: Path) -> str | None:
    """Say which file of a complete checkpoint is not as it was written; None for an intact one.

    Raises UsageError where the disk does not let a file be read, which says nothing about the checkpoint.
    """
    listing = checkpoint / CONTENTS
    try:
        if not listing.exists():
            return None
        contents: dict[str, list[int]] = json.loads(listing.read_text(encoding="utf-8"))
        for name, content in contents.items():
            path = checkpoint / name
            if not path.exists():
                return f"{name} is missing"
            if path.stat().st_size != content[0]:
                return f"{name} has {path.stat().st_size} bytes of {content[0]}"
            if _content(path) != content:
                return f"{name} has other bytes than were written"
    except (ValueError, AttributeError, TypeError, IndexError):
        return f"{CONTENTS} cannot be understood"
    except OSError as error:
        raise UsageError(f"{checkpoint} cannot be read ({error}): look at the disk, then give the same command") from error
    return None


def complete(directory: Path) -> dict[int, Path]:
    """The complete checkpoints by step."""
    return {step: path for step, path in _by_step(directory).items() if (path / COMPLETE).exists()}


def _by_step(directory: Path) -> dict[int, Path]:
    """All checkpoints by step, without copies that somebody has put aside, such as `checkpoint-4.bak`."""
    places = [(path.name.removeprefix("checkpoint-"), path) for path in directory.glob("checkpoint-*")]
    return {int(number): path for number, path in places if number.isdecimal()}


def newest(directory: Path) -> tuple[int, Path | None, tuple[str, ...]]:
    """The step and the place of the newest intact checkpoint, (0, None) where there is none, and a line for each damaged one.

    Checkpoints that are incomplete or damaged are deleted: the steps after the newest intact one are taken again.
    """
    for path in _by_step(directory).values():
        if not (path / COMPLETE).exists():
            shutil.rmtree(path)
    found = complete(directory)
    told: list[str] = []
    for step in sorted(found, reverse=True):
        wrong = damage(found[step])
        if wrong is None:
            return step, found[step], tuple(told)
        (found[step] / COMPLETE).unlink()  # first, so that a kill leaves nothing that looks complete
        shutil.rmtree(found[step])
        told.append(f"{found[step]} is damaged ({wrong}): going on from the one before it, or from the start if there is none")
    return 0, None, tuple(told)


@contextmanager
def writing(directory: Path) -> Iterator[None]:
    """Raise UsageError where a checkpoint is written inside and the disk is full.

    The libraries that write one raise errors of their own kinds then, some without a reason: so the disk itself is asked.
    """
    try:
        yield
    except Exception as error:  # a full disk is told in many ways
        if os.strerror(errno.ENOSPC) in str(error) or is_full(directory):
            raise disk_full(str(directory)) from error
        raise


def is_full(directory: Path) -> bool:
    """Whether the disk of a directory takes no further mebibyte."""
    try:
        with tempfile.TemporaryFile(dir=directory) as probe:
            probe.write(bytes(PROBE))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        return error.errno in FULL
    return False


def _files(checkpoint: Path) -> Iterator[Path]:
    """The files of a checkpoint, without those that describe it."""
    for path in sorted(checkpoint.rglob("*")):
        if path.is_file() and path.name not in (CONTENTS, COMPLETE):
            yield path


def _content(path: Path) -> list[int]:
    """The size in bytes and the CRC-32 of a file."""
    size = checksum = 0
    with path.open("rb") as file:
        while part := file.read(CHUNK):
            size, checksum = size + len(part), zlib.crc32(part, checksum)
    return [size, checksum]
