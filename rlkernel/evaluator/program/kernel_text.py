"""A kernel's text, written anew from its syntax tree: what is checked is what Triton and the interpreter read."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass

from rlkernel.evaluator.program.schema import Function


class KernelRejected(Exception):
    """The kernel's text uses more than Triton's language. `line` is in the candidate's file."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def _default(node: ast.expr) -> bool:
    """Whether a parameter's default is a constant or names one."""
    while isinstance(node, (ast.UnaryOp, ast.Attribute)):
        node = node.operand if isinstance(node, ast.UnaryOp) else node.value
    return isinstance(node, (ast.Constant, ast.Name))


@dataclass(frozen=True, slots=True)
class Canonical:
    """A kernel's text written anew from its tree: what is checked is what Triton and the interpreter read."""

    text: str
    tree: ast.FunctionDef
    """The syntax tree of `text`."""
    lines: dict[int, int]
    """Line of `text` -> line of the candidate's file."""
    parameters: dict[str, str]
    """Name -> the text of its annotation, in order."""


def canonical(function: Function) -> Canonical:
    """Raises KernelRejected unless the text is one plain `def`."""
    return _canonical(function.name, function.source, function.line)


@functools.lru_cache(maxsize=256)
def _canonical(name: str, source: str, line: int) -> Canonical:
    definition = parse(name, source, line)
    arguments = [*definition.args.posonlyargs, *definition.args.args, *definition.args.kwonlyargs]
    notes = {a.arg: ast.unparse(a.annotation) if a.annotation else "" for a in arguments}
    for argument in arguments:  # annotations such as `x: torch.Tensor` mean nothing to Triton, which would look them up
        if "constexpr" in notes[argument.arg]:  # under whatever name it was imported: Triton looks for the word
            argument.annotation = ast.parse("tl.constexpr", mode="eval").body
        elif not (_plain(argument.annotation) and any(word in notes[argument.arg] for word in ("tl.", "triton."))):
            argument.annotation = None
    definition.returns = None
    for node in ast.walk(definition):
        if isinstance(node, ast.Raise):  # Triton compiles none: it stands in branches that are never compiled
            node.exc = node.cause = None
        for branch in ("body", "orelse"):
            if isinstance(body := getattr(node, branch, None), list) and body:
                setattr(node, branch, [n for n in body if not (_is_text(n) or _prints(n))] or [ast.Pass(lineno=body[0].lineno)])
    text = ast.unparse(definition) + "\n"
    tree = parse(name, text, line)
    pairs = zip(_statements(definition), _statements(tree), strict=True)
    lines = {new.lineno: line - 1 + old.lineno for old, new in pairs}
    return Canonical(text, tree, lines, notes)


def _plain(note: ast.expr | None) -> bool:
    """A dotted name or a string; Triton's compiler evaluates annotations, calls included."""
    return note is not None and all(
        isinstance(node, (ast.Name, ast.Attribute, ast.Constant, ast.expr_context)) for node in ast.walk(note)
    )


def _is_text(node: ast.stmt) -> bool:
    """A docstring, or another string without effect."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _prints(node: ast.stmt) -> bool:
    """A print of the kernel, at run time: it has no effect on any result, and where every thread prints it takes seconds."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    called = node.value.func
    return (isinstance(called, ast.Name) and called.id in ("print", "device_print")) or (
        isinstance(called, ast.Attribute) and called.attr == "device_print"
    )


def _statements(tree: ast.AST) -> list[ast.stmt]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]


def parse(name: str, source: str, line: int) -> ast.FunctionDef:
    """The one function that a text is. Raises KernelRejected."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise KernelRejected(f"kernel text does not parse: {error}", line) from error
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef) or tree.body[0].name != name:
        raise KernelRejected("kernel text is not one function", line)
    definition = tree.body[0]
    arguments = definition.args
    if arguments.vararg or arguments.kwarg or definition.decorator_list:
        raise KernelRejected("a kernel takes plain parameters only", line)
    for default in defaults_of(definition):
        if not _default(default):
            raise KernelRejected("a kernel parameter's default must be a constant or its name", line)
    return definition


def defaults_of(definition: ast.FunctionDef) -> list[ast.expr]:
    """The defaults of a function's parameters."""
    return [*definition.args.defaults, *[default for default in definition.args.kw_defaults if default is not None]]
