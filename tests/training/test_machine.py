"""The memory that a command may take: the machine's, or its control group's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlkernel.training.machine import memory_bytes

GIB = 1 << 30
MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/", {}, MACHINE),
        ("0::/", {"memory.max": "1073741824"}, GIB),
        ("0::/a/b", {"a/memory.max": "1073741824", "a/b/memory.max": "max"}, GIB),
        ("0::/a/b", {"a/memory.max": "1073741824", "a/b/memory.max": "536870912"}, GIB // 2),
        ("5:cpu:/a\n4:memory:/a\n0::/", {"memory/a/memory.limit_in_bytes": "1073741824"}, GIB),
        ("4:memory:/of/the/host", {"memory/memory.limit_in_bytes": "1073741824"}, GIB),
        ("4:memory:/", {"memory/memory.limit_in_bytes": "9223372036854771712"}, MACHINE),
        ("4:cpu:/a", {"memory/a/memory.limit_in_bytes": "1073741824"}, MACHINE),
    ],
)
def test_the_tightest_group_counts(groups: str, files: dict[str, str], expected: int, tmp_path: Path) -> None:
    for name, text in {"proc/self/cgroup": groups, **{f"sys/fs/cgroup/{name}": text for name, text in files.items()}}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert memory_bytes(tmp_path) == expected


def test_without_control_groups_the_machine_counts(tmp_path: Path) -> None:
    assert memory_bytes(tmp_path) == MACHINE
