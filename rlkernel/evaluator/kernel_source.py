"""From a Program's kernel text back to functions, on the trusted side, without trusting the text.

Triton's compiler follows attributes and calls what it finds at compile time, and its interpreter runs the body as Python, so
"Triton accepts it" does not mean "it is only a kernel": `tl.core.os.system(...)` inside a kernel body runs on the host. `check`
is the gate: an allow-list over the syntax tree, in which every name and every attribute must resolve to Triton's language.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import linecache
import types
from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.runtime.jit import JITFunction

from rlkernel.evaluator.program import Function, Program, Value, decode_scalar


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
_VALUE_ATTRIBUTES |= {"shape", "dtype", "type", "value", "element_ty", "scalar"}


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

    def __init__(self, function: Function, tree: ast.FunctionDef, names: dict[str, Any]) -> None:
        self.offset = function.line - 1
        self.names = names
        arguments = tree.args
        self.local = {a.arg for a in [*arguments.args, *arguments.posonlyargs, *arguments.kwonlyargs]}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.local.add(node.id)

    def reject(self, message: str, node: ast.AST) -> KernelRejected:
        return KernelRejected(message, self.offset + int(getattr(node, "lineno", 1)))

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt) and not isinstance(node, _STATEMENTS):
            raise self.reject(f"a kernel may not use {type(node).__name__.lower()}", node)
        if not isinstance(node, (ast.stmt, *_EXPRESSIONS)):
            raise self.reject(f"a kernel may not use {type(node).__name__.lower()}", node)
        if isinstance(node, ast.Attribute):
            self.attribute(node)
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self.name(node)
        for child in ast.iter_child_nodes(node):
            self.visit(child)

    def name(self, node: ast.Name) -> None:
        if node.id.startswith("__"):
            raise self.reject(f"a kernel may not use {node.id}", node)
        if node.id not in self.local and node.id not in self.names and node.id not in _BUILTINS:
            raise self.reject(f"NameError: name '{node.id}' is not defined in the kernel", node)

    def attribute(self, node: ast.Attribute) -> None:
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
                    _resolve(module, path, self.offset + node.lineno)
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


def parse(function: Function) -> ast.FunctionDef:
    """The function's tree, if its text is one plain `def`. Raises KernelRejected."""
    try:
        tree = ast.parse(function.source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise KernelRejected(f"kernel text does not parse: {error}", function.line) from error
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef) or tree.body[0].name != function.name:
        raise KernelRejected("kernel text is not one function", function.line)
    definition = tree.body[0]
    arguments = definition.args
    if arguments.vararg or arguments.kwarg or definition.decorator_list:
        raise KernelRejected("a kernel takes plain parameters only", function.line)
    for default in [*arguments.defaults, *[d for d in arguments.kw_defaults if d is not None]]:
        if not _default(default):
            raise KernelRejected("a kernel parameter's default must be a plain constant", function.line)
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
        self._namespaces: dict[int, dict[str, Any]] = {}

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
        _Checker(function, parse(function), namespace).visit(_body_only(parse(function)))
        return built

    def _compile(self, index: int) -> dict[str, Any]:
        """Define the function: its body does not run, its annotations stay strings, its defaults are constants."""
        function = self._functions[index]
        definition = parse(function)
        digest = hashlib.sha256(function.source.encode()).hexdigest()[:16]
        filename = f"<kernel {function.name} {digest}>"
        text = _without_host_annotations(function.source, definition)
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        module = ast.Module(body=[self._transform(definition)], type_ignores=[])
        code = compile(ast.fix_missing_locations(module), filename, "exec", flags=_ANNOTATIONS, dont_inherit=True)
        namespace: dict[str, Any] = {"__builtins__": dict(_BUILTINS), "__name__": "kernel", **self._extra}
        exec(code, namespace)
        self._namespaces[index] = namespace
        return namespace

    def _transform(self, definition: ast.FunctionDef) -> ast.FunctionDef:
        return definition


def _without_host_annotations(source: str, definition: ast.FunctionDef) -> str:
    """The text with annotations such as `x: torch.Tensor` blanked, which Triton would look up; lines and columns stay."""
    lines = [bytearray(line) for line in source.encode().splitlines(keepends=True)]
    arguments = definition.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        note = argument.annotation
        if note is None or any(word in ast.unparse(note) for word in ("constexpr", "tl.", "triton.")):
            continue
        assert note.end_lineno is not None and note.end_col_offset is not None
        for row in range(argument.lineno - 1, note.end_lineno):
            first = argument.col_offset + len(argument.arg.encode()) if row == argument.lineno - 1 else 0
            last = note.end_col_offset if row == note.end_lineno - 1 else len(lines[row]) - 1
            lines[row][first:last] = b" " * (last - first)
    return b"".join(lines).decode()


def _body_only(definition: ast.FunctionDef) -> ast.FunctionDef:
    """The function without annotations: they are text, never evaluated."""
    for argument in ast.walk(definition):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    definition.returns = None
    return definition


_ANNOTATIONS = __import__("__future__").annotations.compiler_flag


def parameters(function: Function) -> dict[str, str]:
    """Parameter name -> the text of its annotation, in order."""
    definition = parse(function)
    arguments = [*definition.args.posonlyargs, *definition.args.args, *definition.args.kwonlyargs]
    return {a.arg: ast.unparse(a.annotation) if a.annotation else "" for a in arguments}
