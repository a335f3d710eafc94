"""What a kernel's text may name and write: an allow-list over the syntax tree and over Triton's own modules.

Every name and every attribute must resolve to Triton's language, a constant, or another function of the Program.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import pkgutil
import types
from collections.abc import Callable, Iterable
from typing import Any

import torch
import triton
import triton.language as tl
from triton.compiler.code_generator import CodeGenerator
from triton.language.extra import libdevice
from triton.runtime.jit import JITFunction

from rlkernel.evaluator.program.kernel_text import Canonical, KernelRejected
from rlkernel.evaluator.program.values import Constexpr, FunctionRef, LibraryRef, ModuleRef, TlDtype, Value

_MODULES = {
    "math",  # pure functions and constants, of compile-time values
    "triton", "triton.language", "triton.language.core", "triton.language.math", "triton.language.standard",
    "triton.language.random",
    "triton.language.extra", "triton.language.extra.libdevice", "triton.language.extra.cuda",
    "triton.language.extra.cuda.libdevice",
}  # fmt: skip
_CONSTANTS = {"torch", "numpy"}
"""Modules of which a kernel may name numbers, as in `-torch.inf`. In their place stands a module that holds nothing else, but for
what tells a dtype's limits, which Triton calls while it compiles: `torch.finfo(torch.float32).max`."""
_LIMITS = ("finfo", "iinfo", *sorted(name for name, value in vars(torch).items() if isinstance(value, torch.dtype)))
BUILTINS: dict[str, Any] = {
    f.__name__: f for f in (range, min, max, abs, len, int, float, bool, str, print, isinstance, sum)
} | {"True": True, "False": False, "None": None}  # fmt: skip
_HOST_BUILTINS = set(CodeGenerator.builtin_namespace) - set(BUILTINS)
"""What Triton's compiler still finds when a local of the same name is unbound: such names are refused even as locals."""
_PYTHON_BUILTINS = frozenset(dir(builtins))
ANNOTATED = {"tl": tl, "triton": triton}
"""What annotations of parameters name, also where a kernel's body does not: no kernel may give these names another meaning."""
_STATEMENTS = (
    ast.FunctionDef, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.If, ast.For, ast.While, ast.Return, ast.Pass,
    ast.Assert, ast.Break, ast.Continue, ast.Raise,
)  # fmt: skip
_EXPRESSIONS = (
    ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Call, ast.IfExp, ast.Attribute, ast.Subscript, ast.Slice, ast.Name,
    ast.Constant, ast.Tuple, ast.List, ast.keyword, ast.arguments, ast.arg, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
    ast.expr_context, ast.Starred, ast.NamedExpr, ast.JoinedStr, ast.FormattedValue, ast.ListComp, ast.comprehension,
)  # fmt: skip
_VALUE_ATTRIBUTES = {
    name
    for cls in (tl.tensor, tl.dtype, tl.block_type, tl.pointer_type, tl.core.tensor_descriptor)
    for name in dir(cls)
    if not name.startswith("_")
}
_VALUE_ATTRIBUTES -= {"handle", "to_ir", "mangle", "codegen_name", "from_ir", "make_ir"}
_VALUE_ATTRIBUTES |= {"shape", "numel", "strides", "dtype", "type", "value", "element_ty", "scalar", *tl.PropagateNan.__members__}
_VALUE_ATTRIBUTES |= {"eps", "tiny", "smallest_normal", "bits"}  # of a dtype's limits, as are `min` and `max`
_VALUE_ATTRIBUTES |= {"primitive_bitwidth", "int_bitwidth", "int_signedness", "fp_mantissa_width", "exponent_bias", "bit_length"}


def _from_triton(value: Any) -> bool:
    """Whether a resolved object is part of Triton's language: a builtin, a library function, a type or a constant."""
    language = (tl.constexpr, tl.tensor, tl.tensor_descriptor, tl.dtype, tl.pointer_type, tl.block_type, tl.PropagateNan)
    if isinstance(value, (JITFunction, tl.dtype, tl.constexpr)) or value in language:
        return True
    if tl.core.is_builtin(value) or type(value).__name__ == "ConstexprFunction":
        return True
    if isinstance(value, type):
        return value in (tl.range, tl.static_range)
    return value in (triton.cdiv, triton.next_power_of_2, tl.core.get_int_dtype)


@functools.cache
def _module(name: str) -> types.ModuleType:
    if name in _CONSTANTS:
        whole, constants = importlib.import_module(name), types.ModuleType(name)
        limits = _LIMITS if whole is torch else ()  # numpy's are numbers that Triton does not take
        vars(constants).update({word: getattr(whole, word) for word in ("inf", "nan", "pi", "e", *limits)})
        return constants
    if name not in _MODULES:
        raise KernelRejected(f"a kernel may not use module {name}", 0)
    return importlib.import_module(name)


def _present(module: types.ModuleType) -> frozenset[str]:
    """Every name that a module has, or that it gets when a part of it is imported."""
    return frozenset(dir(module)) | {part.name for part in pkgutil.iter_modules(getattr(module, "__path__", ()))}


# Decided once, on the pristine modules: the interpreter replaces their members later.
_PRESENT: dict[str, frozenset[str]] = {
    **{module: _present(_module(module)) for module in _MODULES},
    **{module: frozenset(dir(importlib.import_module(module))) for module in _CONSTANTS},
}
"""Names that are never left to Triton. Any other one fails when it is reached, and a branch that is never compiled does not."""
_NAMES: dict[str, frozenset[str]] = {
    module: frozenset(
        name
        for name, value in vars(_module(module)).items()
        if not name.startswith("_")
        and (
            module in {"math", *_CONSTANTS}
            or (isinstance(value, types.ModuleType) and value.__name__ in _MODULES)
            or _from_triton(value)
        )
    )
    for module in _MODULES | _CONSTANTS
}


_STANDARD = "triton.language.standard"
# Helpers of Triton's sorts and reductions, in its own language, which kernels with a sort or a reduction of their own call.
_NAMES[_STANDARD] |= {
    name
    for name, value in vars(_module(_STANDARD)).items()
    if not name.startswith("__") and (isinstance(value, JITFunction) or type(value).__name__ == "ConstexprFunction")
}
for _names in ("triton.language", "triton.language.core"):
    _NAMES[_names] -= {"extern_elementwise"}  # names a file to link
# The generic module's members are place-holders that the compiler maps to the target's.
_NAMES["triton.language.extra.libdevice"] |= {
    name for name in vars(libdevice) if name in _NAMES["triton.language.extra.cuda.libdevice"]
}


def _resolve(root: types.ModuleType, path: list[str], line: int) -> Any:
    """Follow `root.a.b` through Triton's own modules, up to a name that there is not. Raises KernelRejected."""
    value: Any = root
    hidden = next((name for name in path if name.startswith("_") and name not in _NAMES[_STANDARD]), None)
    for name in path:
        if not (isinstance(value, types.ModuleType) and value.__name__ in _NAMES) or hidden is not None:
            raise KernelRejected(f"a kernel may not use .{hidden or name}", line)
        if name not in _PRESENT[value.__name__]:
            return None
        if name not in _NAMES[value.__name__]:
            raise KernelRejected(f"a kernel may not use {value.__name__}.{name}", line)
        value = getattr(value, name)
    return value


class Checker:
    """Walks one function's tree. `names`: free name -> resolved value; `globals_`: all names that the function finds where it
    runs, some of which are not the kernel's, such as those of annotations."""

    def __init__(self, kernel: Canonical, names: dict[str, Any], globals_: Iterable[str]) -> None:
        self.lines = kernel.lines
        self.names = names
        self.found = _PYTHON_BUILTINS.union(globals_)
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
        if isinstance(node, ast.ListComp) and any(part.ifs or part.is_async for part in node.generators):
            raise self.reject("a kernel's comprehension may not filter", node)
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            raise self.reject("a kernel's f-string may not format", node)  # Triton reads no format, Python does
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
        host = node.id in _HOST_BUILTINS or (node.id in ANNOTATED and isinstance(node.ctx, ast.Store))
        if node.id.startswith("__") or host:
            raise self.reject(f"a kernel may not use {node.id}", node)
        if node.id in self.found and not self.defined(node):
            raise self.reject(f"NameError: name '{node.id}' is not defined in the kernel", node)

    def defined(self, node: ast.Name) -> bool:
        """Whether a name means something; what means nothing fails when it is reached."""
        return isinstance(node.ctx, ast.Store) or node.id in self.local or node.id in self.names or node.id in BUILTINS

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
        nothing = isinstance(root, ast.Name) and not self.defined(root)
        for name in path:
            if name.startswith("_") or (name not in _VALUE_ATTRIBUTES and not nothing):
                raise self.reject(f"a kernel value has no attribute '{name}'", node)
        self.visit(root)


def binding_value(value: Value, functions: Callable[[int], Any]) -> Any:
    """A binding as the object that the kernel's name means. Raises KernelRejected."""
    match value:
        case ModuleRef(name):
            return _module(name)
        case Constexpr(inner):
            return tl.constexpr(binding_value(inner, functions))
        case FunctionRef(index):
            return functions(index)
        case TlDtype(name):
            if name not in _DTYPES:
                raise KernelRejected(f"triton.language has no dtype {name}", 0)
            return _resolve(tl, [_DTYPES[name]], 0)
        case LibraryRef(module, name):
            return _library(module, name)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise KernelRejected("a kernel refers to something that is not a constant", 0)


_LIBRARIES = (
    "triton.language", "triton.language.math", "triton", "triton.language.extra.libdevice", "triton.language.extra.cuda",
)  # fmt: skip
_DTYPES = {d.name: n for n, d in vars(tl).items() if isinstance(d, tl.dtype)}


def _library(module: str, name: str) -> Any:
    """`from triton.language import load`: the object, if it is in Triton's language."""
    for place in (*_LIBRARIES, _STANDARD):
        if name in _NAMES[place]:
            return getattr(_module(place), name)
    raise KernelRejected(f"a kernel may not use {module}.{name}", 0)
