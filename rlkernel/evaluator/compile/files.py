"""What Triton writes while it compiles. It reads all of it once, when it has compiled, and nobody reads it afterwards."""

from __future__ import annotations

import os
import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from triton import knobs
from triton.runtime.cache import CacheManager

from rlkernel.errors import FULL, lacking
from rlkernel.evaluator.compile.signature import MachineLacks

FILE_BYTES = 64 << 20
"""The largest file that a compilation may write: eight times as much as what takes half a minute to compile."""
ROOM_BYTES = 16 << 20
"""What a folder must take when the files of a failed compilation are gone: far more than what most compilations write."""


@dataclass
class Written:
    """What a compilation has written."""

    bytes: int = 0
    """Known when it has ended."""


class _Files(CacheManager):  # type: ignore[misc]
    """Files in the folder of Triton's cache, each written in one step. Triton's own manager makes a folder for each, so that
    processes may share them."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        del key, override, dump
        Path(knobs.cache.dir).mkdir(parents=True, exist_ok=True)

    def get_file(self, filename: str) -> str | None:
        del filename
        return None

    def get_group(self, filename: str) -> dict[str, str] | None:
        del filename
        return None

    def put(self, data: object, filename: str, binary: bool = True) -> str:
        del binary  # as in Triton's own, the data says it
        path = Path(knobs.cache.dir, filename)
        raw = data if isinstance(data, bytes) else str(data).encode()
        if len(raw) > FILE_BYTES:
            raise ValueError(f"its intermediate code takes more than {FILE_BYTES >> 20} MiB")
        path.write_bytes(raw)
        return str(path)

    def put_group(self, filename: str, group: dict[str, str]) -> None:
        del filename, group


@contextmanager
def written_once() -> Iterator[Written]:
    """Compilations inside write plain files, and find none of earlier ones. Afterwards the files are gone, also those that ptxas
    leaves where it fails, so that many kernels take no more room than one."""
    written = Written()
    with knobs.cache.scope():
        knobs.cache.manager_class = _Files
        before = set(_files())
        try:
            yield written
        finally:
            for path in set(_files()) - before:
                written.bytes += path.stat().st_size
                path.unlink()


def _files() -> Iterator[Path]:
    folder = Path(knobs.cache.dir)
    return (path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else iter(())


def check_machine(error: Exception, written: Written) -> None:
    """Raises MachineLacks where a compilation failed because of the machine. ptxas tells of a full disk in the words in which it
    tells of a wrong kernel, so room is asked for to see: what this compilation has written is gone by now. Where there is room
    without these files, and they were many, it is they that filled the disk, and the failure is the kernel's."""
    try:
        if isinstance(error, OSError) and not (error.errno in FULL and written.bytes > ROOM_BYTES):
            raise error
        allowed = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        with tempfile.TemporaryFile() as file:
            os.posix_fallocate(file.fileno(), 0, ROOM_BYTES if allowed == resource.RLIM_INFINITY else min(ROOM_BYTES, allowed))
    except OSError as found:
        if lacking(found.errno) is not None:
            raise MachineLacks(found.errno or 0, tempfile.gettempdir()) from error
