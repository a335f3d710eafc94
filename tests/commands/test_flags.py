"""Flags follow from a dataclass: types, defaults, help, and one line for what cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from rlkernel.commands.flags import parse_flags
from rlkernel.errors import UsageError


@dataclass(frozen=True)
class Flags:
    """Flags of a test."""

    files: tuple[Path, ...] = ()
    """Files to read."""
    steps: int = 20
    """At least 5 % of them."""
    learning_rate: float | None = None
    seeds: tuple[int, ...] | None = None
    missing: Literal["fail", "skip"] = "fail"
    out: str = "runs"
    fast: bool = False
    """Hurry."""
    compiled: bool = True
    """Also compare with compiled code."""
    levels: tuple[int, ...] = (1, 2)


def test_what_is_given_overrides_and_the_rest_stays() -> None:
    start = Flags(steps=7, out="there")
    assert parse_flags(start, [], "prog", "files") is not start and parse_flags(start, [], "prog", "files") == start
    words = ["a.py", "--learning-rate", "1e-3", "b.py", "--seeds", "3", "-1", "--fast", "--missing", "skip"]
    assert parse_flags(start, words, "prog", "files") == Flags(
        (Path("a.py"), Path("b.py")), 7, 0.001, (3, -1), "skip", "there", True
    )


def test_spellings_of_a_flag() -> None:
    for words in (
        ["--learning_rate", "2"],
        ["--learning_rate=2"],
        ["--learning-rate=2"],
        ["--learning-rate", "1", "--learning-rate", "2"],
    ):
        assert parse_flags(Flags(), words, "prog").learning_rate == 2.0
    assert parse_flags(Flags(), ["--out", "a_b"], "prog").out == "a_b"
    assert parse_flags(Flags(), ["--out=--a_b"], "prog").out == "--a_b"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--steps", "many"], "--steps many: give a whole number (see prog --help)"),
        (["--steps", "1.5"], "--steps 1.5: give a whole number (see prog --help)"),
        (["--learning_rate=x"], "--learning-rate x: give a number (see prog --help)"),
        (["--seeds", "1", "b"], "--seeds b: give a whole number (see prog --help)"),
        (["--missing", "maybe"], "--missing maybe: give one of fail, skip (see prog --help)"),
        (["--steps"], "--steps expected one argument (see prog --help)"),
        (["--fast=yes"], "--fast ignored explicit argument 'yes' (see prog --help)"),
        (["--step", "3"], "Unrecognized options: --step, 3; perhaps you meant --steps (see prog --help)"),
        (["--advantage", "grpo"], "Unrecognized options: --advantage, grpo (see prog --help)"),
        (["word"], "Unrecognized options: word; what is no flag comes before the flags (see prog --help)"),
    ],
)
def test_one_line_for_what_cannot_be_read(words: list[str], line: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_flags(Flags(), words, "prog")
    assert str(error.value) == line


def test_help_has_the_strings_below_the_fields_and_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parse_flags(Flags(), ["--help"], "prog", "files")
    assert stop.value.code == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Flags of a test." in printed
    assert "PATH Files to read." in printed
    assert "--steps INT At least 5 % of them. (default: 20)" in printed
    assert "--missing fail|skip (default: fail)" in printed
    assert "--fast Hurry. --compiled, --no-compiled Also compare with compiled code. (default: --compiled)" in printed
    assert printed.endswith("--levels [INT ...] (default: 1 2)")


def test_words_before_the_flags_are_in_the_usage_and_not_in_the_hint(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_flags(Flags(), ["--help"], "prog", words="[arm ...]")
    assert capsys.readouterr().out.startswith("usage: prog [arm ...] [-h]")
    with pytest.raises(UsageError, match=r"\(see prog --help\)$"):
        parse_flags(Flags(), ["--steps", "x"], "prog", words="[arm ...]")


def test_what_is_true_otherwise_has_a_negated_flag_and_nothing_else_has() -> None:
    assert not parse_flags(Flags(), ["--no-compiled"], "prog").compiled
    assert parse_flags(Flags(compiled=False), ["--compiled"], "prog").compiled
    # A file may have said so already: words of the command line win.
    assert not parse_flags(Flags(fast=True), ["--no-fast"], "prog").fast
    with pytest.raises(UsageError, match="Unrecognized options: --no-fast"):
        parse_flags(Flags(), ["--no-fast"], "prog")
