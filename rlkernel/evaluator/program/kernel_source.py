"""From a Program's kernel text back to functions, on the trusted side, without trusting the text.

Triton's compiler follows attributes and calls what it finds at compile time, and its interpreter runs the body as Python, so
"Triton accepts it" does not mean "it is only a kernel": `tl.core.os.system(...)` inside a kernel body runs on the host. `check`
is the gate: an allow-list over the syntax tree, in which every name and every attribute must resolve to Triton's language. Triton
is then given text that was written anew from the checked tree, because its own reading of a text can differ from Python's.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import linecache
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl
from triton.compiler.code_generator import CodeGenerator
from triton.language.extra import libdevice
from triton.runtime.jit import JITFunction

from rlkernel.evaluator.program.schema import Function, Program, Value, decode_scalar


class KernelRejected(Exception):
    """The kernel's text uses more than Triton's language. `line` is in the candidate's file."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


_MODULES = {
    "math",  # pure functions and constants, of compile-time values
    "triton", "triton.language", "triton.language.core", "triton.language.math", "triton.language.standard",
    "triton.language.random",
    "triton.language.extra", "triton.language.extra.libdevice", "triton.language.extra.cuda",
    "triton.language.extra.cuda.libdevice",
}  # fmt: skip
_BUILTINS: dict[str, Any] = {
    f.__name__: f for f in (range, min, max, abs, len, int, float, bool, str, print, isinstance, sum)
} | {"True": True, "False": False, "None": None}  # fmt: skip
_HOST_BUILTINS = set(CodeGenerator.builtin_namespace) - set(_BUILTINS)
"""What Triton's compiler still finds when a local of the same name is unbound: such names are refused even as locals."""
_STATEMENTS = (
    ast.FunctionDef, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.If, ast.For, ast.While, ast.Return, ast.Pass,
    ast.Assert, ast.Break, ast.Continue,
)  # fmt: skip
_EXPRESSIONS = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.IfExp, ast.Attribute, ast.Subscript, ast.Slice, ast.Name,
    ast.Constant, ast.Tuple, ast.List, ast.keyword, ast.arguments, ast.arg, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
    ast.expr_context, ast.Starred, ast.NamedExpr,
)  # fmt: skip
_VALUE_ATTRIBUTES = {
    name
    for cls in (tl.tensor, tl.dtype, tl.block_type, tl.pointer_type, tl.core.tensor_descriptor)
    for name in dir(cls)
    if not name.startswith("_")
}
_VALUE_ATTRIBUTES -= {"handle", "to_ir", "mangle", "codegen_name", "from_ir", "make_ir"}
_VALUE_ATTRIBUTES |= {"shape", "strides", "dtype", "type", "value", "element_ty", "scalar"}


def _from_triton(value: Any) -> bool:
    """Whether a resolved object is part of Triton's language: a builtin, a library function, a type or a constant."""
    if isinstance(value, (JITFunction, tl.dtype, tl.constexpr)) or value in (tl.constexpr, tl.tensor, tl.dtype, tl.pointer_type):
        return True
    if tl.core.is_builtin(value) or type(value).__name__ == "ConstexprFunction":
        return True
    if isinstance(value, type):
        return value in (tl.range, tl.static_range)
    return value in (triton.cdiv, triton.next_power_of_2)


@functools.cache
def _module(name: str) -> types.ModuleType:
    if name not in _MODULES:
        raise KernelRejected(f"a kernel may not use module {name}", 0)
    return importlib.import_module(name)


# Decided once, on the pristine modules: the interpreter replaces their members later.
_NAMES: dict[str, frozenset[str]] = {
    module: frozenset(
        name
        for name, value in vars(_module(module)).items()
        if not name.startswith("_")
        and (module == "math" or (isinstance(value, types.ModuleType) and value.__name__ in _MODULES) or _from_triton(value))
    )
    for module in _MODULES
}


for _names in ("triton.language", "triton.language.core"):
    _NAMES[_names] -= {"extern_elementwise"}  # names a file to link
# The generic module's members are place-holders that the compiler maps to the target's.
_NAMES["triton.language.extra.libdevice"] |= {
    name for name in vars(libdevice) if name in _NAMES["triton.language.extra.cuda.libdevice"]
}


def _resolve(root: types.ModuleType, path: list[str], line: int) -> Any:
    """Follow `root.a.b` through Triton's own modules. Raises KernelRejected."""
    value: Any = root
    for name in path:
        if not (isinstance(value, types.ModuleType) and value.__name__ in _MODULES) or name.startswith("_"):
            raise KernelRejected(f"a kernel may not use .{name}", line)
        if not hasattr(value, name):
            raise KernelRejected(f"module '{value.__name__}' has no attribute '{name}'", line)
        if name not in _NAMES[value.__name__]:
            raise KernelRejected(f"a kernel may not use {value.__name__}.{name}", line)
        value = getattr(value, name)
    return value


class _Checker:
    """Walks one function's tree. `names`: free name -> resolved value."""

    def __init__(self, kernel: Canonical, names: dict[str, Any]) -> None:
        self.lines = kernel.lines
        self.names = names
        arguments = kernel.tree.args
        self.local = {a.arg for a in [*arguments.args, *arguments.posonlyargs, *arguments.kwonlyargs]}
        for node in ast.walk(kernel.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.local.add(node.id)

    def line(self, node: ast.AST) -> int:
        return self.lines.get(int(getattr(node, "lineno", 1)), self.lines[1])

    def reject(self, message: str, node: ast.AST) -> KernelRejected:
        return KernelRejected(message, self.line(node))

    def check(self, tree: ast.FunctionDef) -> None:
        self.visit(tree)

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt) and not isinstance(node, _STATEMENTS):
            raise self.reject(f"a kernel may not use {type(node).__name__.lower()}", node)
        if not isinstance(node, (ast.stmt, *_EXPRESSIONS)):
            raise self.reject(f"a kernel may not use {type(node).__name__.lower()}", node)
        if isinstance(node, ast.Attribute):
            self.attribute(node)
            return
        if isinstance(node, ast.Name):
            self.name(node)
        if isinstance(node, ast.arg):
            return  # its annotation is text, never evaluated
        for child in ast.iter_child_nodes(node):
            self.visit(child)

    def name(self, node: ast.Name) -> None:
        if node.id.startswith("__") or node.id in _HOST_BUILTINS:
            raise self.reject(f"a kernel may not use {node.id}", node)
        if (
            isinstance(node.ctx, ast.Load)
            and node.id not in self.local
            and node.id not in self.names
            and node.id not in _BUILTINS
        ):
            raise self.reject(f"NameError: name '{node.id}' is not defined in the kernel", node)

    def attribute(self, node: ast.Attribute) -> None:
        if not isinstance(node.ctx, ast.Load):
            raise self.reject("a kernel may not assign to an attribute", node)
        path: list[str] = []
        root: ast.AST = node
        while isinstance(root, ast.Attribute):
            path.insert(0, root.attr)
            root = root.value
        module = self.names.get(root.id) if isinstance(root, ast.Name) and root.id not in self.local else None
        if isinstance(module, types.ModuleType):
            rest: list[str] = []
            while path:  # `tl.float32.primitive_bitwidth`: modules first, then attributes of a value
                try:
                    _resolve(module, path, self.line(node))
                    break
                except KernelRejected:
                    if len(path) == 1 or path[-1] not in _VALUE_ATTRIBUTES:
                        raise
                    rest.insert(0, path.pop())
            return
        for name in path:
            if name.startswith("_") or name not in _VALUE_ATTRIBUTES:
                raise self.reject(f"a kernel value has no attribute '{name}'", node)
        self.visit(root)


def _default(node: ast.expr) -> bool:
    """Whether a parameter's default is a plain constant."""
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant))


@dataclass(frozen=True, slots=True)
class Canonical:
    """A kernel's text written anew from its tree: what is checked is what Triton and the interpreter read."""

    text: str
    tree: ast.FunctionDef
    """Of `text`."""
    lines: dict[int, int]
    """Line of `text` -> line of the candidate's file."""
    parameters: dict[str, str]
    """Name -> the text of its annotation, in order."""


def canonical(function: Function) -> Canonical:
    """Raises KernelRejected unless the text is one plain `def`."""
    return _canonical(function.name, function.source, function.line)


@functools.lru_cache(maxsize=256)
def _canonical(name: str, source: str, line: int) -> Canonical:
    definition = _parse(name, source, line)
    arguments = [*definition.args.posonlyargs, *definition.args.args, *definition.args.kwonlyargs]
    notes = {a.arg: ast.unparse(a.annotation) if a.annotation else "" for a in arguments}
    for argument in arguments:  # annotations such as `x: torch.Tensor` mean nothing to Triton, which would look them up
        if not (_plain(argument.annotation) and any(word in notes[argument.arg] for word in ("constexpr", "tl.", "triton."))):
            argument.annotation = None
    definition.returns = None
    for node in ast.walk(definition):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [n for n in body if not _is_text(n)] or [ast.Pass(lineno=body[0].lineno)]  # type: ignore[attr-defined]
    text = ast.unparse(definition) + "\n"
    tree = _parse(name, text, line)
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


def _statements(tree: ast.AST) -> list[ast.stmt]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]


def _parse(name: str, source: str, line: int) -> ast.FunctionDef:
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
    for default in [*arguments.defaults, *[d for d in arguments.kw_defaults if d is not None]]:
        if not _default(default):
            raise KernelRejected("a kernel parameter's default must be a plain constant", line)
    return definition


def binding_value(value: Value, functions: Callable[[int], Any]) -> Any:
    """A binding as the object that the kernel's name means. Raises KernelRejected."""
    if isinstance(value, dict):
        if "module" in value:
            return _module(str(value["module"]))
        if "constexpr" in value:
            return tl.constexpr(binding_value(value["constexpr"], functions))
        if "function" in value:
            return functions(value["function"])
        if "tl_dtype" in value:
            return _resolve(tl, [_DTYPES.get(str(value["tl_dtype"]), "?")], 0)
        if "triton" in value and len(value["triton"]) == 2:
            return _library(str(value["triton"][0]), str(value["triton"][1]))
    literal = decode_scalar(value)
    if isinstance(literal, (dict, list)):
        raise KernelRejected("a kernel refers to something that is not a constant", 0)
    return literal


_DTYPES = {d.name: n for n, d in vars(tl).items() if isinstance(d, tl.dtype)}


def _library(module: str, name: str) -> Any:
    """`from triton.language import load`: the object, if it is in Triton's language."""
    for place in ("triton.language", "triton.language.math", "triton", "triton.language.extra.libdevice"):
        if name in _NAMES[place]:
            return getattr(_module(place), name)
    raise KernelRejected(f"a kernel may not use {module}.{name}", 0)


class KernelSet:
    """A Program's functions as Python functions, checked and built on demand, in one flavour (`wrap`)."""

    def __init__(self, program: Program, wrap: Callable[[Any, Function], Any], extra: dict[str, Any] | None = None) -> None:
        self._functions = program.functions
        self._wrap = wrap
        self._extra = extra or {}
        self._built: dict[int, Any] = {}

    def get(self, index: int) -> Any:
        if index in self._built:
            return self._built[index]
        function = self._functions[index]
        namespace = self._compile(index)
        self._built[index] = built = self._wrap(namespace[function.name], function)
        for name, value in function.bindings.items():
            namespace[name] = binding_value(value, self.get)
        if function.name in function.bindings:  # a recursive mention means the wrapped function
            namespace[function.name] = built
        names = {name: namespace[name] for name in function.bindings}
        kernel = canonical(function)
        _Checker(kernel, names).check(kernel.tree)
        return built

    def _compile(self, index: int) -> dict[str, Any]:
        """Define the function: its body does not run, its annotations stay strings, its defaults are constants."""
        function = self._functions[index]
        kernel = canonical(function)
        digest = hashlib.sha256(kernel.text.encode()).hexdigest()[:16]
        filename = f"<kernel {function.name} {digest}>"
        linecache.cache[filename] = (len(kernel.text), None, kernel.text.splitlines(keepends=True), filename)
        module = ast.Module(body=[self._transform(_parse(function.name, kernel.text, function.line))], type_ignores=[])
        code = compile(ast.fix_missing_locations(module), filename, "exec", flags=_ANNOTATIONS, dont_inherit=True)
        namespace: dict[str, Any] = {"__builtins__": dict(_BUILTINS), "__name__": "kernel", **self._extra}
        exec(code, namespace)
        return namespace

    def _transform(self, definition: ast.FunctionDef) -> ast.FunctionDef:
        return definition


_ANNOTATIONS = __import__("__future__").annotations.compiler_flag
