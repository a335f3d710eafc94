"""What Triton writes inside lies in its folder as plain files, is never found again, and is gone afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
from triton.runtime.cache import get_cache_manager

from rlkernel.evaluator.compile.files import written_once


def test_files_are_written_in_one_folder_and_not_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    usual = type(get_cache_manager("ab"))
    with written_once() as written:
        manager = get_cache_manager("ab")
        paths = {name: manager.put(data, name) for name, data in (("k.ttir", "module {}"), ("k.cubin", b"\x7fELF"))}
        manager.put_group("k.json", paths)
        assert {path.name: path.read_bytes() for path in (tmp_path / "cache").iterdir() if path.is_file()} == {
            "k.ttir": b"module {}",
            "k.cubin": b"\x7fELF",
        }
        assert get_cache_manager("ab").get_group("k.json") is None
        assert get_cache_manager("ab").get_file("k.ttir") is None
    assert paths["k.cubin"] == str(tmp_path / "cache" / "k.cubin")
    assert type(get_cache_manager("ab")) is usual
    assert written.bytes == len("module {}") + 4
    assert not any(path.is_file() for path in (tmp_path / "cache").iterdir())


def test_what_was_there_before_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    (tmp_path / "kept").write_text("kept")
    with pytest.raises(ZeroDivisionError), written_once():
        (tmp_path / "left.ptx").write_text("by ptxas")
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_file_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("rlkernel.evaluator.compile.files.FILE_BYTES", 1 << 20)
    with written_once(), pytest.raises(ValueError, match="more than 1 MiB"):
        get_cache_manager("ab").put(bytes((1 << 20) + 1), "k.llir")
