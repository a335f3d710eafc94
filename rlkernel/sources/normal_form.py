"""What a reference says apart from names, constants and sizes: two files with the same form are one task in other clothes.

The form is that of `Model` and of the module's classes and functions that it uses. Names of the author's own are numbered in the
order of their first use, numbers and texts lose their values, imports lose their aliases, and annotations, docstrings and
comments are left out. `rlkernel.evaluator.program.normal_form` does the same for what a reference executes. Ours.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
from collections.abc import Iterator

KEPT = frozenset(dir(builtins)) | {"self", "__init__", "forward"}
"""Names that are not the author's own."""
NUMBER = "#"
REGISTERS = ("register_buffer", "register_parameter", "add_module")
Definition = ast.ClassDef | ast.FunctionDef


def normal_form(source: str) -> str:
    """16 hex digits that equal those of any file which differs in names, constants, sizes and layout alone.

    Raises ValueError for a file that does not parse or has no `Model`.
    """
    try:
        tree = ast.parse(source.removeprefix("\ufeff"))
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"not a Python file: {error}") from error
    definitions = {node.name: node for node in tree.body if isinstance(node, Definition)}
    if "Model" not in definitions:
        raise ValueError("it defines no Model")
    used = list(_used("Model", definitions))
    form = _Form(tree, used, frozenset(definitions))
    text = "\n".join(ast.dump(form.visit(node)) for node in used)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _used(name: str, definitions: dict[str, Definition]) -> Iterator[Definition]:
    """The definition of that name and all that it uses, each once, in the order of first use."""
    waiting, seen = [name], {name}
    while waiting:
        node = definitions[waiting.pop(0)]
        yield node
        for inner in _in_order(node):
            if isinstance(inner, ast.Name) and inner.id in definitions and inner.id not in seen:
                seen.add(inner.id)
                waiting.append(inner.id)


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below a node as the text has them; `ast.walk` goes level by level."""
    for child in ast.iter_child_nodes(node):
        yield child
        yield from _in_order(child)


class _Form(ast.NodeTransformer):
    """Takes names, constants and sizes out of a tree."""

    def __init__(self, tree: ast.Module, used: list[Definition], defined: frozenset[str]) -> None:
        self._imports = _imports(tree)
        self._defined = defined
        self._constants = {
            target.id for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign))
            for target in ast.walk(node) if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
        }  # fmt: skip
        stored = (
            a.attr for node in used for a in ast.walk(node) if isinstance(a, ast.Attribute) and isinstance(a.ctx, ast.Store)
        )
        methods = (m.name for node in used if isinstance(node, ast.ClassDef) for m in node.body if isinstance(m, ast.FunctionDef))
        self._attributes = {*stored, *methods, *(name for node in used for name in _registered(node))} - KEPT
        self._numbers: dict[str, str] = {}

    def _own(self, name: str) -> str:
        return name if name in KEPT else self._numbers.setdefault(name, f"v{len(self._numbers)}")

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._imports:
            return ast.Name(self._imports[node.id])
        if node.id in self._constants:
            return ast.Name(NUMBER)
        return ast.Name(self._own(node.id))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        value = self.visit(node.value)
        if isinstance(value, ast.Name) and ("." in value.id or value.id in self._imports.values()):
            return ast.Name(f"{value.id}.{node.attr}")
        return ast.Attribute(value, self._own(node.attr) if node.attr in self._attributes else node.attr)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return node if isinstance(node.value, bool) or node.value is None else ast.Name(NUMBER)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        operand = self.visit(node.operand)
        return operand if _is_number(operand) else ast.UnaryOp(node.op, operand)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        left, right = self.visit(node.left), self.visit(node.right)
        return ast.Name(NUMBER) if _is_number(left) and _is_number(right) else ast.BinOp(left, node.op, right)

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        return self._sequence([self.visit(item) for item in node.elts])

    def visit_List(self, node: ast.List) -> ast.AST:
        return self._sequence([self.visit(item) for item in node.elts])

    def _sequence(self, items: list[ast.expr]) -> ast.AST:
        return ast.Name(NUMBER) if items and all(map(_is_number, items)) else ast.Tuple(items)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call; `super(Model, self)` is `super()`. Keywords are the author's own where what is called is."""
        function = self.visit(node.func)
        if isinstance(function, ast.Name) and function.id == "super":
            return ast.Call(function, [], [])
        own = isinstance(node.func, ast.Name) and node.func.id in self._defined
        own = own or (isinstance(node.func, ast.Attribute) and node.func.attr in self._attributes)
        keywords = [
            ast.keyword(self._own(k.arg) if own and k.arg is not None else k.arg, self.visit(k.value))
            for k in sorted(node.keywords, key=lambda k: "" if own else k.arg or "")
        ]
        return ast.Call(function, [self.visit(item) for item in node.args], keywords)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(self._own(node.arg))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        value = self.visit(node.value) if node.value is not None else ast.Name(NUMBER)
        return ast.Assign([self.visit(node.target)], value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        name, arguments = self._own(node.name), self.visit(node.args)
        return ast.FunctionDef(name, arguments, [self.visit(s) for s in node.body if not _is_text(s)], [])

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        name, bases = self._own(node.name), [self.visit(base) for base in node.bases]
        return ast.ClassDef(name, bases, [], [self.visit(s) for s in node.body if not _is_text(s)], [])


def _registered(node: ast.AST) -> Iterator[str]:
    """The attributes that a class makes by their name, e.g. `register_buffer("scale", ...)`."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in REGISTERS and call.args:
            first = call.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == NUMBER


def _is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring, or another constant without effect."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _imports(tree: ast.Module) -> dict[str, str]:
    """Name in the file -> what it stands for, e.g. F -> torch.nn.functional."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found
