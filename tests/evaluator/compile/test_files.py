"""What Triton writes inside lies in its folder as plain files, and is never found again."""

from __future__ import annotations

from pathlib import Path

import pytest
from triton.runtime.cache import get_cache_manager

from rlkernel.evaluator.compile.files import written_once


def test_files_are_written_in_one_folder_and_not_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    usual = type(get_cache_manager("ab"))
    with written_once():
        manager = get_cache_manager("ab")
        paths = {name: manager.put(data, name) for name, data in (("k.ttir", "module {}"), ("k.cubin", b"\x7fELF"))}
        manager.put_group("k.json", paths)
        assert get_cache_manager("ab").get_group("k.json") is None
        assert get_cache_manager("ab").get_file("k.ttir") is None
    assert {path.name: path.read_bytes() for path in (tmp_path / "cache").iterdir() if path.is_file()} == {
        "k.ttir": b"module {}",
        "k.cubin": b"\x7fELF",
    }
    assert paths["k.cubin"] == str(tmp_path / "cache" / "k.cubin")
    assert type(get_cache_manager("ab")) is usual
