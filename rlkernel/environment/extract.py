"""Finds the candidate's code in a completion. Works on text alone: nothing is parsed or executed as Python."""

from __future__ import annotations

import re
from dataclasses import dataclass

PYTHON_TAGS = frozenset({"", "python", "py", "python3", "triton"})
MAX_LINE = 2000
"""Longer lines are not searched for quotes, and at most MAX_PASSED fences per block are passed over: linear time for any text."""
MAX_PASSED = 8
_MODEL_NEW = re.compile(r"^[ \t]*class\s+ModelNew\b", re.MULTILINE)
_END_OF_TURN = re.compile(r"<\|(?:im_end|endoftext|eot_id|end)\|>")
_OPEN_THOUGHT = re.compile(r"^[ \t]*<(think|thinking|reasoning)>", re.MULTILINE)
_CLOSED_THOUGHT = re.compile(r"^[^#\"'`\n]*</(?:think|thinking|reasoning)>", re.MULTILINE)
"""A closing tag alone, whose opening one the chat template wrote. It does not count in a comment or a string of the code."""
_OPENER = re.compile(r"^(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})[ \t]*\{?\.?(?P<tag>[\w+-]*)[^`]*$")
_LATE_OPENER = re.compile(r"^.*[^`](?P<fence>`{3})(?P<tag>python3?|py|triton)[ \t]*$", re.IGNORECASE)
"""A tagged fence after prose on the same line."""
_CODE_START = re.compile(r"^(?:import |from \w[\w.]* import |@triton\.|class |def )", re.MULTILINE)
_STRINGS = re.compile(r"#.*|\"\"\"|'''|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")


@dataclass(frozen=True, slots=True)
class Block:
    tag: str
    code: str


def extract_code(completion: str) -> str | None:
    """The last fenced block that defines `ModelNew`; else the last Python block; else unfenced code with `ModelNew`; else None.

    Thoughts (`<think>...</think>`) never count. A block that the completion does not close runs to its end. A fence inside a
    triple-quoted string of the code does not close the block.

    >>> extract_code("Fuse it.\\n```python\\nclass ModelNew: pass\\n```\\nDone.")
    'class ModelNew: pass\\n'
    """
    text = _without_thoughts(completion.replace("\r\n", "\n").replace("\r", "\n"))
    blocks = [block for block in fenced_blocks(text) if block.code.strip()]
    for block in reversed(blocks):
        if _MODEL_NEW.search(block.code):
            return _tidy(block.code)
    for block in reversed(blocks):
        if block.tag in PYTHON_TAGS:
            return _tidy(block.code)
    start = _CODE_START.search(text)
    return _tidy(text[start.start() :]) if not blocks and start and _MODEL_NEW.search(text) else None


def fenced_blocks(text: str) -> list[Block]:
    """All fenced blocks in order, their tags in lower case, their code without the fence's own indentation."""
    lines = text.split("\n")
    blocks = []
    index = 0
    while index < len(lines):
        opener = _OPENER.match(lines[index]) or _LATE_OPENER.match(lines[index])
        index += 1
        if opener is None:
            continue
        end, last = _closing(lines, index, opener["fence"])
        indent = len(opener.groupdict().get("indent") or "")
        body = [*lines[index:end], *([last] if last else [])]
        blocks.append(Block(opener["tag"].lower(), "\n".join(_outdent(line, indent) for line in body)))
        index = end + 1
    return blocks


def _closing(lines: list[str], start: int, fence: str) -> tuple[int, str]:
    """The line that closes the block, and what stands on it before the fence; the number of lines when none does.

    Fences inside a triple-quoted string are passed over, unless no other fence follows: then the first one closes.
    """
    quote = ""
    inside_string: list[int] = []
    closing = re.compile(rf"[ \t]*{re.escape(fence[0])}{{{len(fence)},}}[ \t]*")
    for index in range(start, len(lines)):
        line = lines[index]
        if closing.fullmatch(line):
            if not quote:
                return index, ""
            inside_string.append(index)
            if len(inside_string) == MAX_PASSED:
                break
        elif not quote and fence == "```" and line.rstrip().endswith("```") and line.count("`") == 3:
            return index, line.rstrip()[:-3]
        quote = _quote_after(line, quote)
    return (inside_string[0] if inside_string else len(lines)), ""


def _quote_after(line: str, quote: str) -> str:
    """The triple quote that is open after `line`, given the one open before it; empty when none."""
    position = 0
    if len(line) > MAX_LINE:
        return quote
    while position < len(line):
        if quote:
            end = line.find(quote, position)
            if end < 0:
                return quote
            position, quote = end + 3, ""
        found = _STRINGS.search(line, position)
        if found is None:
            return ""
        position = found.end()
        if found[0] in ('"""', "'''"):
            quote = found[0]
    return quote


def _without_thoughts(text: str) -> str:
    text = _END_OF_TURN.split(text, maxsplit=1)[0]
    while opened := _OPEN_THOUGHT.search(text):
        _, closed, answer = text[opened.end() :].partition(f"</{opened[1]}>")
        text = text[: opened.start()] + answer
        if not closed:
            break
    if orphan := _CLOSED_THOUGHT.search(text):
        text = text[orphan.end() :]
    return text


def _outdent(line: str, indent: int) -> str:
    blank = len(line) - len(line.lstrip(" \t"))
    return line[min(blank, indent) :]


def _tidy(code: str) -> str:
    return code.strip("\n").rstrip() + "\n"
