"""The whole numbers of a reference file that are sizes and have no name, as constants of its own.

They stand in `get_inputs`, in `get_init_inputs` and in functions that these call; in configurations, which are dicts, or calls of
the file's own classes, among its constants; and in the defaults of such classes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlkernel.evaluator.judging.sizes.constants import SHAPE, sizes_of
from rlkernel.evaluator.judging.sizes.made_inputs import HOISTED, making
from rlkernel.reference_text import replace_spans

MAKING = ("get_inputs", "get_init_inputs")
NO_SIZES = ("Module", "Function")
"""Bases of classes that compute: their numbers are the candidate's, too."""
Number = tuple[ast.expr, int]


def hoisted(source: str) -> str:
    """The same file with its unnamed sizes of at least `HOISTED` as constants of its own.

    There is one for each number, so that equal ones stay equal. Numbers that follow one another remain so, as 2049 that `randint`
    stays below, or 498 and 499 in 500: the one that two divides most often has the constant. Defaults of parameters stay as they
    are, but for those of the two functions that nobody calls with arguments.

    >>> print(hoisted("def get_inputs():\\n    return [torch.rand(4096, 3)]\\n"), end="")
    def get_inputs():
        return [torch.rand(SIZE_4096, 3)]
    SIZE_4096 = 4096
    >>> hoisted("def get_inputs():\\n    return [torch.randint(0, 2049, (2048,))]\\n").splitlines()[1].strip()
    'return [torch.randint(0, (SIZE_2048 + 1), (SIZE_2048,))]'
    >>> hoisted("def get_inputs():\\n    return [torch.rand(500), 498, 499]\\n").splitlines()[1].strip()
    'return [torch.rand(SIZE_500), (SIZE_500 - 2), (SIZE_500 - 1)]'
    >>> print(hoisted("import torch\\nCONFIG = {'rows': 512, 'kernel_size': 9}\\n"), end="")
    SIZE_512 = 512; import torch
    CONFIG = {'rows': SIZE_512, 'kernel_size': 9}
    """
    text = source.removeprefix("\ufeff")
    tree = ast.parse(text)
    later = [number for function in making(text, *MAKING) for statement in function.body for number in _numbers(statement)]
    at_once = [*_of_defaults(text), *_of_configurations(text, tree)]
    if not later and not at_once:
        return source
    said = _said(sorted({value for _, value in (*later, *at_once)}))
    made = [f"{name} = {value}" for value, name in said.items() if name == f"SIZE_{value}"]
    replaced = replace_spans(text, [(node, said[value]) for node, value in (*later, *at_once)])
    if at_once:  # they are read while the file is loaded
        return _before_all_else(replaced, made)
    return replaced.rstrip() + "\n" + "".join(f"{line}\n" for line in made)


def _numbers(tree: ast.AST) -> Iterator[Number]:
    """The whole numbers in a part of a file that may be sizes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value >= HOISTED:
            yield node, node.value


def _of_defaults(text: str) -> Iterator[Number]:
    """The defaults of the parameters of the two functions themselves."""
    for function in making(text, *MAKING):
        if function.name in MAKING:
            for default in (*function.args.defaults, *(one for one in function.args.kw_defaults if one is not None)):
                yield from _numbers(default)


def _of_configurations(text: str, tree: ast.Module) -> Iterator[Number]:
    """The numbers of dicts, and of calls of the file's own classes, among its constants, and of the defaults of such classes."""
    plain, classes = sizes_of(text), {one.name: one for one in tree.body if isinstance(one, ast.ClassDef) and _is_plain(one)}
    for statement in tree.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if not any(isinstance(target, ast.Name) and target.id in plain for target in targets):
                yield from _configured(statement.value, classes)
    for one in classes.values():
        for statement in one.body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
                named = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
                if isinstance(named, ast.Name) and not SHAPE.search(named.id):
                    yield from _numbers(statement.value)


def _is_plain(one: ast.ClassDef) -> bool:
    return not any(word in ast.unparse(base) for base in one.bases for word in NO_SIZES)


def _configured(value: ast.expr, classes: dict[str, ast.ClassDef]) -> Iterator[Number]:
    """The numbers that a dict, or a call of one of these classes, holds under names that are a size's."""
    if isinstance(value, ast.Dict):
        keys = [str(key.value) if isinstance(key, ast.Constant) else "" for key in value.keys]
        pairs = [*zip(keys, value.values, strict=True)]
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in (*classes, "dict"):
        pairs = [("", item) for item in value.args] + [(item.arg or "", item.value) for item in value.keywords]
    else:
        return
    for name, item in pairs:
        if SHAPE.search(name):
            continue
        if isinstance(item, (ast.Dict, ast.Call)):
            yield from _configured(item, classes)
        else:
            yield from _numbers(item)


def _before_all_else(text: str, made: list[str]) -> str:
    """The text with lines before its first statement that may stand behind others, on the line of that, so that lines keep their
    numbers."""
    for statement in ast.parse(text).body:
        first = isinstance(statement, ast.Expr) or (isinstance(statement, ast.ImportFrom) and statement.module == "__future__")
        if not first:
            lines, at = text.splitlines(keepends=True), min([statement.lineno, *(one.lineno for one in _decorators(statement))])
            simple = not hasattr(statement, "body")
            lines[at - 1] = "; ".join(made) + ("; " if simple else "\n") + lines[at - 1]
            return "".join(lines)
    return text


def _decorators(statement: ast.stmt) -> list[ast.expr]:
    return statement.decorator_list if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) else []


def _said(values: list[int]) -> dict[int, str]:
    """How each of some rising numbers is said: by its own constant, or beside that of one in the same row of numbers."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    said = {}
    for run in runs:
        base = max(run, key=lambda value: value & -value)
        for value in run:
            said[value] = f"(SIZE_{base} {'+' if value > base else '-'} {abs(value - base)})" if value != base else f"SIZE_{base}"
    return said
