"""What Triton writes while it compiles. It reads all of it once, when it has compiled, and nobody reads it afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from triton import knobs
from triton.runtime.cache import CacheManager

from rlkernel.errors import lacking
from rlkernel.evaluator.compile.signature import MachineLacks

_PROBE_BYTES = 1 << 20
"""What a folder must still take after a compilation has failed: more than what most compilations write."""


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
        path.write_bytes(data if isinstance(data, bytes) else str(data).encode())
        return str(path)

    def put_group(self, filename: str, group: dict[str, str]) -> None:
        del filename, group


@contextmanager
def written_once() -> Iterator[None]:
    """Compilations inside write plain files, and find none of earlier ones."""
    with knobs.cache.scope():
        knobs.cache.manager_class = _Files
        yield


def check_machine(error: Exception) -> None:
    """Raises MachineLacks where a compilation failed because of the machine. ptxas tells of a full disk in the words in which it
    tells of a wrong kernel, so a file is written to see."""
    try:
        if isinstance(error, OSError):
            raise error
        with tempfile.TemporaryFile() as file:
            file.write(bytes(_PROBE_BYTES))
    except OSError as found:
        if lacking(found.errno) is not None:
            raise MachineLacks(found.errno or 0, tempfile.gettempdir()) from error
