"""Numbers that host code reads from parameters and buffers: nobody knows them while a candidate is traced.

Such a number is a float or an int that remembers where it comes from. Arithmetic on it is recorded as `Scalar` steps; a branch
on it cannot be traced. Its value is a tag, drawn anew for each number: torch's own code carries a tag through to the operator
that is recorded, where it is known again. What C++ computes from a tag is unlike from call to call, and so `inconsistent`.
"""

from __future__ import annotations

import ast
import builtins
import functools
import math
import operator
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from rlkernel.evaluator.program.scalars import OPERATIONS
from rlkernel.evaluator.program.schema import Scalar
from rlkernel.evaluator.program.values import ScalarRef, Value
from rlkernel.patched import patched


class Untraceable(Exception):
    """The candidate's host code needs what a trace cannot give: a tensor's value, an address, an unknown operator."""

    noted: ClassVar[list[Untraceable] | None] = None
    """Where each is noted that is raised, see `noting`."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        if Untraceable.noted is not None:
            Untraceable.noted.append(self)


class UnknownValue(Untraceable):
    """It needs what a tensor holds, or how long a result is that values decide, and nothing says so before forward runs."""


@contextmanager
def noting() -> Iterator[list[Untraceable]]:
    """Gives what is refused inside, in order. No GPU refuses it, so that a candidate that goes on otherwise, `try: ... except:`,
    does there what it would do nowhere else."""
    found: list[Untraceable] = []
    before, Untraceable.noted = Untraceable.noted, found
    try:
        yield found
    finally:
        Untraceable.noted = before


BRANCH = "host code branches on a parameter's value; pass the value to a kernel or use torch.where"


class HostNumbers:
    """The numbers that were read in one trace, and the steps that read and compute them."""

    def __init__(self, append: Callable[[Scalar], None]) -> None:
        self._append = append
        self._tags: dict[float | int, int] = {}
        self._count = 0

    def __len__(self) -> int:
        """Numbers given so far."""
        return self._count

    def made(self, operation: str, args: tuple[Value, ...], *, whole: bool) -> HostFloat | HostInt:
        """A new number that `operation` gives, on values of a Program."""
        number = self._count
        self._count += 1
        self._append(Scalar(number, operation, args))
        # A half of something is a probability, an epsilon and a slope; no tensor has so many elements.
        tag = (1 << 61) + 2 * secrets.randbits(58) + 1 if whole else 0.25 + secrets.randbits(50) / 2**51
        self._tags[tag] = number
        found: HostFloat | HostInt = HostInt(tag) if whole else HostFloat(tag)
        found.owner, found.number = self, number
        return found

    def known(self, value: float | int) -> Value:
        """`value` as a Program says it: a ScalarRef where it is a tag."""
        if not self._tags and type(value) in _PLAIN:  # no such number was made
            return value
        if isinstance(value, (HostFloat, HostInt)):
            return ScalarRef(value.number)
        number = None if isinstance(value, bool) else self._tags.get(value)
        return value if number is None else ScalarRef(number)

    def apply(self, operation: str, *args: Any) -> Any:
        """The number that Python's `operation` gives; NotImplemented where an argument is no number."""
        if not all(isinstance(arg, (int, float)) for arg in args):
            return NotImplemented
        return self.made(operation, tuple(self.known(arg) for arg in args), whole=_whole(operation, args))


def _whole(operation: str, args: tuple[Any, ...]) -> bool:
    """Whether an operation on numbers gives an int."""
    if operation in ("int", "floor", "ceil", "trunc") or (operation == "round" and len(args) == 1):
        return True
    kept = operation in ("add", "sub", "mul", "floordiv", "mod", "pow", "neg", "abs", "min", "max", "round")
    return kept and all(isinstance(arg, int) for arg in args)


def _refuse(*args: Any) -> Any:
    raise UnknownValue(BRANCH)


def _forward(operation: str) -> Callable[..., Any]:
    return lambda self, *others: self.owner.apply(operation, self, *others)


def _reflected(operation: str) -> Callable[..., Any]:
    return lambda self, other: self.owner.apply(operation, other, self)


_OF_NUMPY = {"multiply": "mul", "subtract": "sub", "divide": "truediv", "power": "pow", "negative": "neg", "absolute": "abs"}
"""numpy's names of operations that have another one here."""


def _universal(self: Any, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
    """What a function of numpy makes of numbers, such as `np.exp(self.scale.item())`. Raises Untraceable for another one."""
    name = _OF_NUMPY.get(function.__name__, function.__name__)
    inputs = tuple(value.item() if isinstance(value, np.generic) else value for value in inputs)
    plain = all(isinstance(value, (int, float)) for value in inputs)
    if method != "__call__" or options or name not in OPERATIONS or not plain:
        raise UnknownValue(f"numpy's {function.__name__} of a parameter's value; use Python's own arithmetic, or torch's")
    return self.owner.apply(name, *inputs)


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
_METHODS: dict[str, Any] = {
    **{f"__{name}__": _forward(name) for name in (*_BINARY, "neg", "abs", "round", "floor", "ceil", "trunc")},
    **{f"__r{name}__": _reflected(name) for name in _BINARY},
    **{f"__{name}__": _refuse for name in ("eq", "ne", "lt", "le", "gt", "ge", "bool", "hash", "divmod")},
    "__pos__": lambda self: self,
    "__array_ufunc__": _universal,
}


class HostFloat(float):
    """A float that is known when the weights are."""

    owner: HostNumbers
    number: int


class HostInt(int):
    """An int that is known when the weights are."""

    owner: HostNumbers
    number: int


for _name, _method in _METHODS.items():
    setattr(HostFloat, _name, _method)
    setattr(HostInt, _name, _method)


def has_numbers(value: Any) -> bool:
    """Whether a number, or a list of numbers, holds one that is known when the weights are."""
    if type(value) in _PLAIN:  # nearly always, and asked for each part of each launch
        return False
    if isinstance(value, (list, tuple)):
        return any(type(item) not in _PLAIN and has_numbers(item) for item in value)
    return isinstance(value, (HostFloat, HostInt))


_PLAIN = frozenset({str, int, bool, float, type(None)})
"""The types of values that are no such numbers."""


def _aware(operation: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python that records itself where an argument is a number of the host's."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and hasattr(args[0], "item") and operation in ("float", "int", "round"):
            args = (args[0].item(),)
        if operation == "int" and len(args) == 1 and isinstance(args[0], int) and hasattr(args[0], "modulus"):
            return args[0]  # an address stays one
        owner = next((arg.owner for arg in args if isinstance(arg, (HostFloat, HostInt))), None)
        return plain(*args, **kwargs) if owner is None else owner.apply(operation, *args)

    return call


def _range(*args: Any) -> range:
    if any(isinstance(arg, (HostFloat, HostInt)) for arg in args):
        raise UnknownValue("the length of a loop depends on a parameter's value; make it a number of __init__")
    return range(*args)


def _binary(operation: str, left: Any, right: Any) -> Any:
    """An operator of Python. A plain float takes a HostInt on its right as any int, without asking it."""
    if type(left) is float and isinstance(right, HostInt):
        return right.owner.apply(operation, left, right)
    return getattr(operator, operation)(left, right)


_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow",
}  # fmt: skip
_CALLS: dict[str, Callable[..., Any]] = {
    "_host_binary": _binary,
    **{f"_host_{name}": _aware(name, getattr(builtins, name)) for name in ("float", "int", "round", "min", "max")},
    "_host_range": _range,
}
"""What a candidate calls in place of `float`, `int` and the like, which give numbers that have forgotten where they come from."""


def _given(node: ast.AST) -> list[str]:
    """Names that a node of a text gives a meaning."""
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    return [node.asname or node.name] if isinstance(node, ast.alias) else []


class _Calls(ast.NodeTransformer):
    """Lets a candidate call the functions of `_CALLS`, but for names that its text gives another meaning."""

    def __init__(self, tree: ast.AST) -> None:
        self.taken = {name for node in ast.walk(tree) for name in _given(node)}

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        name = _OPERATORS.get(type(node.op))
        if name is None or isinstance(node.right, ast.Constant):
            return node
        function, operation = ast.Name("_host_binary", ast.Load()), ast.Constant(name)
        for new in (function, operation):
            ast.copy_location(new, node)
        return ast.copy_location(ast.Call(function, [operation, node.left, node.right], []), node)

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and f"_host_{node.func.id}" in _CALLS and node.func.id not in self.taken:
            node.func.id = f"_host_{node.func.id}"
        return node


@functools.lru_cache(maxsize=1)  # a candidate is traced at two sizes
def compiled(source: str, filename: str) -> Any:
    """A candidate's text as code that runs in a namespace with `names()`. Raises SyntaxError."""
    tree = ast.parse(source, filename)
    return compile(_Calls(tree).visit(tree), filename, "exec", dont_inherit=True)


def names() -> dict[str, Any]:
    """What the namespace of `compiled` code needs, beside Python's own names."""
    return {"__builtins__": {**vars(builtins), **_CALLS}}


@contextmanager
def mathematics() -> Iterator[None]:
    """Inside, the functions of `math` take numbers of the host's."""
    aware: dict[str, Any] = {name: _aware(name, getattr(math, name)) for name in OPERATIONS if hasattr(math, name)}
    with patched(math, **aware):
        yield
