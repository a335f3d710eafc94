"""The statement of a kernel at which something was raised."""

from __future__ import annotations

import linecache

from rlkernel.evaluator.cpu.statements import MOST_SHOWN, at_statement


def raised(text: str, filename: str) -> Exception:
    """What running a text of this file raises."""
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    try:
        exec(compile(text, filename, "exec"))
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_the_innermost_statement_of_a_kernel_is_shown() -> None:
    text = "def helper(a):\n    return a / 0\nx = helper(1)\n"
    assert at_statement(raised(text, "<kernel k 1>")) == ", at `return a / 0`"


def test_a_long_statement_is_cut() -> None:
    text = "x = 1 / 0" + " + 1" * 100
    assert at_statement(raised(text, "<kernel k 2>")) == f", at `{text[:MOST_SHOWN]}...`"


def test_what_was_raised_elsewhere_has_no_statement() -> None:
    assert at_statement(raised("1 / 0", "host.py")) == ""
    assert at_statement(ValueError("never raised")) == ""
