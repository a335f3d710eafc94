"""Which checkpoint a run goes on from when files of the newest one are cut, changed, lost or unreadable."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rlkernel.errors import UsageError
from rlkernel.runs import checkpoints, durable


def write(directory: Path, step: int) -> Path:
    """A sealed checkpoint of two files, one of them in a folder."""
    checkpoint = directory / f"checkpoint-{step}"
    (checkpoint / "adapter").mkdir(parents=True)
    (checkpoint / "optimizer.pt").write_bytes(bytes(range(200)))
    (checkpoint / "adapter" / "model.safetensors").write_bytes(b"weights")
    checkpoints.seal(checkpoint)
    return checkpoint


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def change(path: Path) -> None:
    """One bit, as a bad disk does; the size stays."""
    held = bytearray(path.read_bytes())
    held[5] ^= 1
    path.write_bytes(held)


@pytest.mark.parametrize(
    ("file", "harm", "told"),
    [
        ("optimizer.pt", cut, "optimizer.pt has 199 bytes of 200"),
        ("optimizer.pt", change, "optimizer.pt has other bytes than were written"),
        ("adapter/model.safetensors", cut, "adapter/model.safetensors has 6 bytes of 7"),
        ("adapter/model.safetensors", os.unlink, "adapter/model.safetensors is missing"),
        ("contents.json", cut, None),  # its last character is the end of the line
        ("contents.json", lambda path: path.write_bytes(path.read_bytes()[:20]), "contents.json cannot be understood"),
        ("contents.json", lambda path: path.write_text("[1]"), "contents.json cannot be understood"),
    ],
)
def test_a_damaged_one_is_told_in_one_line_and_the_one_before_it_is_taken(
    file: str, harm: Callable[[Path], object], told: str | None, tmp_path: Path
) -> None:
    older, newer = write(tmp_path, 8), write(tmp_path, 10)
    assert checkpoints.newest(tmp_path) == (10, newer, ())
    harm(newer / file)
    assert checkpoints.damage(newer) == told
    if told is None:
        assert checkpoints.newest(tmp_path) == (10, newer, ())
        return
    end = "going on from the one before it, or from the start if there is none"
    assert checkpoints.newest(tmp_path) == (8, older, (f"{newer} is damaged ({told}): {end}",))
    assert not newer.exists()
    assert checkpoints.newest(tmp_path) == (8, older, ())  # it is told once


def test_a_copy_that_was_put_aside_is_neither_taken_nor_deleted(tmp_path: Path) -> None:
    whole = write(tmp_path, 8)
    aside = write(tmp_path, 9).rename(tmp_path / "checkpoint-9.bak")
    half = write(tmp_path, 10).rename(tmp_path / "checkpoint-10 (copy)")
    (half / checkpoints.COMPLETE).unlink()
    assert checkpoints.newest(tmp_path) == (8, whole, ())
    assert aside.exists() and half.exists()


def test_without_an_intact_one_the_run_starts_over(tmp_path: Path) -> None:
    for step in (1, 2):
        cut(write(tmp_path, step) / "optimizer.pt")
    step, place, told = checkpoints.newest(tmp_path)
    assert (step, place, len(told)) == (0, None, 2)
    assert checkpoints.newest(tmp_path / "nothing") == (0, None, ())


def test_one_of_an_earlier_version_is_taken_as_it_is(tmp_path: Path) -> None:
    older = write(tmp_path, 3)
    (older / checkpoints.CONTENTS).unlink()
    assert checkpoints.newest(tmp_path) == (3, older, ())


def test_a_disk_that_does_not_answer_costs_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = write(tmp_path, 3)

    def unreadable(path: Path) -> list[int]:
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr(checkpoints, "_content", unreadable)
    with pytest.raises(UsageError, match=r"checkpoint-3 cannot be read \(.*Input/output error.*\): look at the disk"):
        checkpoints.newest(tmp_path)
    assert (kept / checkpoints.COMPLETE).exists()


def test_files_and_names_are_on_the_disk_before_the_mark_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut keeps what was synced. fsync of a file or directory is observed with what it holds at that moment."""
    checkpoint = tmp_path / "checkpoint-1"
    checkpoint.mkdir()
    (checkpoint / "model.safetensors").write_bytes(b"weights")
    seen: list[tuple[str, bool]] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        seen.append((os.readlink(f"/proc/self/fd/{handle}"), (checkpoint / checkpoints.COMPLETE).exists()))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    checkpoints.seal(checkpoint)
    assert seen == [
        (str(checkpoint / "model.safetensors"), False),
        (str(checkpoint / "contents.json.draft"), False),
        (str(checkpoint), False),
        (str(checkpoint), True),
        (str(tmp_path), True),
    ]


def test_a_text_is_replaced_on_the_disk_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "manifest.json"
    durable.replace_text(path, "one")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        durable.replace_text(path, "two")
    assert path.read_text() == "one"


@pytest.mark.parametrize(
    ("error", "room", "told"),
    [
        (RuntimeError("unexpected pos 64 vs 0"), False, True),  # as torch says it, without a reason
        (RuntimeError("I/O error: No space left on device (os error 28)"), True, True),  # what was half written is gone again
        (RuntimeError("unexpected pos 64 vs 0"), True, False),
    ],
)
def test_what_libraries_raise_on_a_full_disk_is_one_line(
    error: Exception, room: bool, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(handle: int) -> None:
        if not room:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(UsageError if told else RuntimeError) as raised, checkpoints.writing(tmp_path):
        raise error
    assert str(raised.value).startswith(f"the disk is full while {tmp_path} was written: free some space") is told
    assert not list(tmp_path.iterdir())  # the probe leaves nothing
