"""Gives a reference's module the name `Model`, whatever its author has called it."""

from __future__ import annotations

import ast
import io
import keyword
import tokenize


def as_model(source: str, entry_point: str) -> str:
    """The file with its class `entry_point` named `Model`; what was called `Model` before gets another name.

    Only names are changed: strings, comments and attributes of other things stay. Raises ValueError where the file does not
    define the class, or does not parse.

    >>> as_model("class Net:\\n    pass\\nmake = Net  # a Net\\n", "Net")
    'class Model:\\n    pass\\nmake = Model  # a Net\\n'
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"not a Python file: {error}") from error
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    if entry_point not in classes:
        raise ValueError(f"no class {entry_point}; the file has {', '.join(sorted(classes)) or 'no class'}")
    if entry_point == "Model":
        return source
    names = _names(source)
    renamed = {entry_point: "Model"}
    if any(token.string == "Model" for token in names):
        taken = {token.string for token in names}
        renamed["Model"] = next(name for k in range(len(taken) + 1) if (name := f"Model{k}") not in taken)
    lines = list(_lines(source))
    for token in reversed(names):
        if token.string in renamed:
            row, column = token.start
            line = lines[row - 1]
            lines[row - 1] = line[:column] + renamed[token.string] + line[token.end[1] :]
    return "".join(lines)


def _lines(source: str) -> io.StringIO:
    """The lines as Python counts them: a form feed ends none."""
    return io.StringIO(source, newline="")


def _names(source: str) -> list[tokenize.TokenInfo]:
    """The tokens that are names and no attributes, in order. Raises ValueError where the text has no tokens."""
    found: list[tokenize.TokenInfo] = []
    previous = ""
    try:
        for token in tokenize.generate_tokens(_lines(source).readline):
            if token.type == tokenize.NAME and previous != "." and not keyword.iskeyword(token.string):
                found.append(token)
            previous = token.string
    except (tokenize.TokenError, SyntaxError) as error:
        raise ValueError(f"not a Python file: {error}") from error
    return found
