"""What somebody wrote about the runs of an experiment, and the headline that other pages quote of it."""

from __future__ import annotations

import re
from pathlib import Path

FINDINGS = "findings.md"
"""What somebody saw in the runs of an experiment, written by hand beside its page, which links to it."""
BOLD_START = re.compile(r"^\*\*.*?(?=\n\s*\n|\Z)", re.DOTALL | re.MULTILINE)
SENTENCE_END = re.compile(r"[.?!](?=\*{0,2}(?:\s+[^a-z\s]|\s*$))")
"""What ends a sentence: a stop that no small letter follows, as one does in `e.g. this`, and no digit, as in `Fast@1.2`."""
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def read_headline(directory: Path) -> str | None:
    """The headline of the findings in an experiment's folder, as `headline` has it; None where nobody wrote any."""
    path = directory / FINDINGS
    return headline(path.read_text(encoding="utf-8")) if path.is_file() else None


def headline(findings: str) -> str:
    """The first sentence that begins a paragraph in bold, as plain text on one line; empty where none does.

    >>> headline("# Seen" + chr(10) * 2 + "**PR raises [coverage](c.md)** by 1.5 points. **No.** More")
    'PR raises coverage by 1.5 points.'
    """
    found = BOLD_START.search(findings)
    if found is None:
        return ""
    text = " ".join(LINK.sub(r"\1", found[0]).split())
    end = SENTENCE_END.search(text)
    return (text[: end.end()] if end else text).replace("**", "")
