"""The page of claims is what the experiments' code claims."""

from __future__ import annotations

from pathlib import Path

import pytest

import rlkernel
from experiments.claims import main, page, table
from rlkernel.report.claims import Claim
from rlkernel.report.summary import Window

PAGE = Path(rlkernel.__file__).parent.parent / "docs" / "claims.md"


def test_the_page_in_the_docs_is_generated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m experiments.claims`"
    assert main(["--out", str(tmp_path / "claims.md")]) == 0
    assert capsys.readouterr().out == f"claims: {tmp_path / 'claims.md'}\n"
    assert (tmp_path / "claims.md").read_text(encoding="utf-8") == page()


def test_a_row_says_which_arm_is_expected_higher_where_and_when() -> None:
    start = Window(step=0)
    claims = (
        Claim("a", "x", "y", "fast_1", "", margin=0.02),
        Claim("b", "x", "x", "hacking_rate", "", higher=False, worse_window=start, among="/new_", after_look=True),
    )
    assert table(claims)[2:] == [
        "| a | `x` | higher | `y` | `fast_1` | second half | 2 % |",
        "| b (added after a look) | `x` | lower | `x` | `hacking_rate` of `/new_` | second half, against before training | 5 % |",
    ]
