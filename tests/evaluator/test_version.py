"""Which stored results the change of a file throws away, and which it leaves."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rlkernel.evaluator import version

HASHES = {
    "verdicts": version.verdict_version,
    "binaries": version.binary_version,
    "baselines": version.baseline_version,
    "source": version.source_version,
}


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder `rlkernel` once more, which may be changed; the hashes are those of this copy."""
    here = Path(version.__file__).parent
    shutil.copytree(here, tmp_path / "rlkernel" / "evaluator", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(here.parent / "reference.py", tmp_path / "rlkernel")
    shutil.copy(here.parent / "seeds.py", tmp_path / "rlkernel")
    monkeypatch.setattr(version, "_HERE", tmp_path / "rlkernel" / "evaluator")
    return tmp_path / "rlkernel"


def hashes() -> dict[str, str]:
    """All hashes, computed anew."""
    return {name: call.__wrapped__() for name, call in HASHES.items()}


def changed_by(file: Path) -> set[str]:
    before = hashes()
    file.write_text(file.read_text() + "# another line\n")
    after = hashes()
    return {name for name in HASHES if before[name] != after[name]}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("evaluator/judging/errors/comparison.py", {"verdicts", "baselines", "source"}),
        ("evaluator/trace/recorder.py", {"verdicts", "source"}),
        ("evaluator/processes/sandbox.py", {"verdicts", "source"}),
        ("evaluator/compile/compiler.py", {"verdicts", "binaries", "source"}),
        ("evaluator/gpu/stopwatch.py", {"verdicts", "baselines", "source"}),
        ("evaluator/program/schema.py", {"verdicts", "binaries", "baselines", "source"}),
        ("evaluator/devices.py", {"verdicts", "binaries", "baselines", "source"}),
        ("evaluator/config.py", {"verdicts", "source"}),
        ("reference.py", {"verdicts", "binaries", "baselines", "source"}),
        ("seeds.py", {"verdicts", "binaries", "baselines", "source"}),
        # who asks, waits and remembers
        ("evaluator/ray/workers.py", {"source"}),
        ("evaluator/cards/gpu_runner.py", {"source"}),
        ("evaluator/cards/watch.py", {"source"}),
        ("evaluator/pool.py", {"source"}),
        ("evaluator/cache.py", {"source"}),
        ("evaluator/caching.py", {"source"}),
        ("evaluator/version.py", {"source"}),
    ],
)
def test_a_change_of_a_file_counts_where_it_matters(copy: Path, file: str, expected: set[str]) -> None:
    assert changed_by(copy / file) == expected


def test_a_new_module_counts_by_what_it_holds(copy: Path) -> None:
    before = hashes()
    (copy / "evaluator" / "judging" / "new.py").write_text("")
    (copy / "evaluator" / "judging" / "new.txt").write_text("not source")
    after_empty = hashes()
    assert after_empty == before, "an empty file holds nothing that could change a result"
    (copy / "evaluator" / "judging" / "new.py").write_text("X = 1\n")
    assert {name for name in HASHES if hashes()[name] != before[name]} == {"verdicts", "baselines", "source"}


def test_another_torch_is_another_version_of_everything(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = hashes()
    monkeypatch.setattr(version, "version", lambda package: "9.9" if package == "torch" else "1.0")
    one = hashes()
    monkeypatch.setattr(version, "version", lambda package: "9.8" if package == "torch" else "1.0")
    two = hashes()
    assert all(len({before[name], one[name], two[name]}) == 3 for name in HASHES)


@pytest.mark.parametrize("name", HASHES)
def test_a_hash_is_of_this_checkout(name: str, copy: Path) -> None:
    assert HASHES[name].__wrapped__() == HASHES[name]()
    assert len(HASHES[name]()) == 16
