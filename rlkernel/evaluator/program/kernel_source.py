"""From a Program's kernel text back to functions, on the trusted side, without trusting the text.

Triton's compiler follows attributes and calls what it finds at compile time, and its interpreter runs the body as Python, so
"Triton accepts it" does not mean "it is only a kernel": `tl.core.os.system(...)` inside a kernel body runs on the host.
`kernel_rules.py` is the gate. Triton is then given text that was written anew from the checked tree, because its own reading of a
text can differ from Python's.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
from collections.abc import Callable
from typing import Any

from rlkernel.evaluator.program import constexpr_functions
from rlkernel.evaluator.program.kernel_rules import ANNOTATED, BUILTINS, Checker, binding_value
from rlkernel.evaluator.program.kernel_text import Canonical, KernelRejected, canonical, defaults_of, parse
from rlkernel.evaluator.program.schema import Function, Program
from rlkernel.evaluator.program.values import FunctionRef

FILES = "<kernel "
"""How the names begin by which Python knows the files of kernels."""


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
        wrap = self._wrap_constexpr if function.constexpr else self._wrap
        self._built[index] = built = wrap(namespace[function.name], function)
        for name, value in function.bindings.items():
            namespace[name] = binding_value(value, self.get)
        if function.name in function.bindings:  # a recursive mention means the wrapped function
            namespace[function.name] = built
        names = {name: namespace[name] for name in function.bindings}
        kernel = canonical(function)
        Checker(kernel, names, namespace).check(kernel.tree)
        return built

    def _compile(self, index: int) -> dict[str, Any]:
        """Define the function: its body does not run, its annotations stay strings, its defaults are constants and names of
        constants. `tl` and `triton` are there for annotations, which name them where a body may not."""
        function = self._functions[index]
        kernel = canonical(function)
        digest = hashlib.sha256(kernel.text.encode()).hexdigest()[:16]
        filename = f"{FILES}{function.name} {digest}>"
        linecache.cache[filename] = (len(kernel.text), None, kernel.text.splitlines(keepends=True), filename)
        tree = parse(function.name, kernel.text, function.line)
        tree = constexpr_functions.Bounded(function.line).visit(tree) if function.constexpr else self._transform(tree)
        module = ast.Module(body=[tree], type_ignores=[])
        code = compile(ast.fix_missing_locations(module), filename, "exec", flags=_ANNOTATIONS, dont_inherit=True)
        extra = constexpr_functions.words() if function.constexpr else self._extra
        namespace: dict[str, Any] = {"__builtins__": dict(BUILTINS), "__name__": "kernel", **ANNOTATED, **extra}
        self._bind_defaults(function, kernel, namespace)
        exec(code, namespace)
        return namespace

    def _bind_defaults(self, function: Function, kernel: Canonical, namespace: dict[str, Any]) -> None:
        """Let the names in the parameters' defaults mean what they mean to the candidate. Raises KernelRejected."""
        defaults = defaults_of(kernel.tree)
        used = {node.id for default in defaults for node in ast.walk(default) if isinstance(node, ast.Name)}
        names: dict[str, Any] = {}
        for name in used & function.bindings.keys():
            if isinstance(function.bindings[name], FunctionRef):
                raise KernelRejected(f"a kernel parameter's default is the function {name}", function.line)
            names[name] = binding_value(function.bindings[name], self.get)
        checker = Checker(kernel, names, namespace)
        checker.local = set()
        for default in defaults:
            checker.visit(default)
        namespace.update(names)

    def _transform(self, definition: ast.FunctionDef) -> ast.FunctionDef:
        return definition

    def _wrap_constexpr(self, fn: Any, function: Function) -> Any:
        """A function that runs while kernels are compiled, as this flavour of kernels calls it."""
        return constexpr_functions.compiled(fn)


_ANNOTATIONS = __import__("__future__").annotations.compiler_flag
