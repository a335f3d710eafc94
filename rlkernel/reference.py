"""A reference file in KernelBench's format as a value: its model, its inputs, its text for the prompt, its small variant.

The reference is trusted code and runs in this process; a broken one raises `BrokenReference`, one line that names the file.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from rlkernel.errors import BrokenReference
from rlkernel.seeds import WORDS, Stream, following, noting, seed_generators

REQUIRED = ("Model", "get_inputs", "get_init_inputs")
SMALL = "SMALL"
FIXED = "FIXED"
INSTALL = {"einops": "pip install 'rlkernel[kernelbench]' brings it"}
"""Modules that known references import and the package does not need."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A loaded reference. Every method seeds all random numbers, so that the same seed gives the same values.

    Tensors are made on torch's current default device; floating-point tensors default to float32.
    """

    name: str
    namespace: dict[str, Any]
    """The executed file's globals."""
    streams: tuple[Stream, ...] | None = None
    """The generators that the file has made; None if it draws by torch's own alone and sets no seed."""

    @property
    def fixed(self) -> tuple[str, ...]:
        """Patterns of the parameters and buffers whose constant values are the point, so that judging leaves them as they are."""
        return tuple(self.namespace.get(FIXED, ()))

    def init_inputs(self, seed: int = 0) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments of `Model`. Raises BrokenReference.

        `get_init_inputs` may return a list of arguments, a dict of keyword arguments, or both as `[[...], {...}]`.
        """
        value = self._call("get_init_inputs", seed, self.namespace["get_init_inputs"])
        args, kwargs = _split_init_inputs(value, self.namespace["Model"], self.name)
        _check_plain([*args, *kwargs.values()], "get_init_inputs", self.name)
        return args, kwargs

    def inputs(self, seed: int) -> list[Any]:
        """Arguments of `forward` drawn from `seed`: tensors, Python scalars, or nested lists of these. Raises BrokenReference."""
        value = self._call("get_inputs", seed, self.namespace["get_inputs"])
        if not isinstance(value, (list, tuple)):
            raise BrokenReference(
                f"{self.name}: get_inputs returned {type(value).__name__}; return a list of forward's arguments"
            )
        _check_plain(value, "get_inputs", self.name)
        return list(value)

    def model(self, seed: int) -> nn.Module:
        """`Model` in the mode that its constructor leaves it in, with weights drawn from `seed`. Raises BrokenReference."""
        args, kwargs = self.init_inputs(seed)
        model = self._call("Model(*get_init_inputs())", seed, lambda: self.namespace["Model"](*args, **kwargs))
        if not isinstance(model, nn.Module):
            raise BrokenReference(f"{self.name}: Model is not a torch.nn.Module; derive it from nn.Module")
        return model

    def _call(self, what: str, seed: int, function: Callable[[], Any]) -> Any:
        with _float32(), nullcontext() if torch.cuda.is_available() else _Here():
            try:
                if self.streams is None:
                    seed_generators(seed)
                    return function()
                with following(seed, self.streams):
                    return function()
            except Exception as error:  # any failure of the file's own code becomes one line about the file
                raise BrokenReference(f"{self.name}: {what} raised {_describe(error, _filename(self.name))}") from error


class _Here(TorchFunctionMode):
    """Where there is no GPU, tensors that a file asks for on "cuda" are made on the CPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        if func is torch.Tensor.cuda:
            return args[0]
        return func(*map(_here, args), **{key: _here(value) for key, value in (kwargs or {}).items()})


def _here(value: Any) -> Any:
    named = isinstance(value, torch.device) or (isinstance(value, str) and value.partition(":")[0] == "cuda")
    return torch.device("cpu") if named and torch.device(value).type == "cuda" else value


def load_reference(source: str, *, small: bool, name: str = "reference") -> Reference:
    """Execute a reference file's text; with `small`, after `apply_small`. `name` stands in messages. Raises BrokenReference."""
    source = apply_small(source, name=name) if small else source.removeprefix("\ufeff")
    _parse(source, name)
    filename = _filename(name)
    # inspect.getsource and tracebacks find the text here; torch.jit and triton need it for functions without a file.
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": "reference", "__file__": filename}
    with _float32(), noting() as streams:
        try:
            exec(compile(source, filename, "exec", dont_inherit=True), namespace)
        except Exception as error:  # any failure of the file's own code becomes one line about the file
            raise BrokenReference(f"{name}: importing it raised {_describe(error, filename)}") from error
    missing = [required for required in REQUIRED if not callable(namespace.get(required))]
    if missing:
        raise BrokenReference(
            f"{name}: it defines no {', '.join(missing)}; a reference has Model, get_inputs and get_init_inputs"
        )
    fixed = namespace.get(FIXED, ())
    if not isinstance(fixed, (tuple, list)) or not all(isinstance(pattern, str) for pattern in fixed):
        raise BrokenReference(f'{name}: FIXED is not a tuple of names of parameters, such as ("norm.weight",) or ("*",)')
    return Reference(name, namespace, tuple(streams) if any(word in source for word in WORDS) else None)


def apply_small(source: str, *, name: str = "reference") -> str:
    """The same file with the module constants named in its `SMALL` dict replaced; unchanged without `SMALL`.

    Raises BrokenReference when the file does not parse, when `SMALL` is not a literal dict of constants, or when it names a
    constant that the file does not assign in a plain `NAME = value` line.

    >>> apply_small("N = 4096\\nSMALL = {'N': 8}\\n")
    "N = 8\\nSMALL = {'N': 8}\\n"
    """
    source = source.removeprefix("\ufeff")
    tree = _parse(source, name)
    overrides = _small_overrides(tree, name)
    if not overrides:
        return source
    spans: list[tuple[ast.expr, str]] = []
    for statement in tree.body:
        spans += [(value, repr(overrides[target])) for target, value in _assigned(statement) if target in overrides]
    found = {target for statement in tree.body for target, _ in _assigned(statement)}
    if unknown := sorted(set(overrides) - found):
        raise BrokenReference(
            f"{name}: SMALL names {unknown[0]}, but no line assigns `{unknown[0]} = ...` at the top of the file"
        )
    if len({(value.lineno, value.col_offset) for value, _ in spans}) < len({(v.lineno, v.col_offset, t) for v, t in spans}):
        raise BrokenReference(f"{name}: SMALL gives other values to names that one line assigns together; give them the same")
    return replace_spans(source, spans)


def small_constants(source: str, *, name: str = "reference") -> dict[str, list[Any]]:
    """`[full value, small value]` of each constant in `SMALL` that the file assigns as a literal. Raises BrokenReference.

    >>> small_constants("N = 4096\\nSMALL = {'N': 8}\\n")
    {'N': [4096, 8]}
    """
    tree = _parse(source.removeprefix("\ufeff"), name)
    small = _small_overrides(tree, name)
    full = {target: _literal(value) for statement in tree.body for target, value in _assigned(statement)}
    return {key: [full[key], small[key]] for key in small if full.get(key) is not None}


def shrink(source: str, constants: Mapping[str, Sequence[Any]]) -> str:
    """A candidate's text for the small shapes: where it repeats a constant of the reference, `NAME = full`, NAME is small.

    Without this, no candidate could create a parameter whose shape is such a constant. Text that does not parse is unchanged.

    >>> shrink("N = 2048 * 2\\nM = 4096\\n", {"N": [4096, 8]})
    'N = 8\\nM = 4096\\n'
    >>> shrink("N = M = BLOCK = 4096\\n", {"N": [4096, 8], "M": [4096, 4]})
    'N = M = BLOCK = 4096; N = 8; M = 4\\n'
    >>> shrink("N = M = (\\n    4096)\\n", {"N": [4096, 8]})
    'N = M = 4096; N = 8\\n'
    """
    if not constants:
        return source
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    spans: list[tuple[ast.expr | ast.stmt, str]] = []
    for statement in tree.body:
        pairs = [(t, value) for t, value in _assigned(statement) if t in constants and _literal(value) == constants[t][0]]
        small = {target: repr(constants[target][1]) for target, _ in pairs}
        if isinstance(statement, ast.Assign) and len(statement.targets) > 1 and pairs:  # some names may keep what others lose
            later = "".join(f"; {target} = {value}" for target, value in small.items())
            spans.append((statement, ast.unparse(statement) + later))  # whole, because a value may stand in brackets
        else:
            spans += [(value, small[target]) for target, value in pairs]
    return replace_spans(source, spans) if spans else source


_ARITHMETIC: Any = {ast.Mult: operator.mul, ast.Add: operator.add, ast.LShift: operator.lshift, ast.Pow: operator.pow}


def _literal(value: ast.expr, depth: int = 4) -> Any:
    """A constant, or arithmetic on small whole numbers, such as `2048 * 2`, up to so many operators deep; None for the rest."""
    if isinstance(value, ast.BinOp) and depth and (compute := _ARITHMETIC.get(type(value.op))):
        left, right = _literal(value.left, depth - 1), _literal(value.right, depth - 1)
        most = 64 if isinstance(value.op, (ast.LShift, ast.Pow)) else 1 << 40
        return compute(left, right) if type(left) is type(right) is int and abs(left) < 1 << 40 and 0 <= right < most else None
    return value.value if isinstance(value, ast.Constant) else None


def replace_spans(source: str, spans: Sequence[tuple[ast.expr | ast.stmt, str]]) -> str:
    """The text with other text in the places of some of its expressions and statements."""
    # ast counts columns in UTF-8 bytes, so edit bytes; from the end, so that earlier offsets stay right.
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    text = source.encode()
    once = {(value.lineno, value.col_offset): (value, replacement) for value, replacement in spans}
    for _, (value, replacement) in sorted(once.items(), reverse=True):
        assert value.end_lineno is not None and value.end_col_offset is not None
        first = starts[value.lineno - 1] + value.col_offset
        last = starts[value.end_lineno - 1] + value.end_col_offset
        text = text[:first] + replacement.encode() + text[last:]
    return text.decode()


def prompt_source(source: str, *, name: str = "reference") -> str:
    """What the policy is shown: the file without its docstring and its `SMALL`, which say nothing about the task at full shape.

    >>> prompt_source('"A sum."\\nimport torch\\n\\nN = 4\\nSMALL = {"N": 2}\\n')
    'import torch\\n\\nN = 4\\n'
    """
    source = source.removeprefix("\ufeff")
    tree = _parse(source, name)
    lines = source.splitlines(keepends=True)
    drop: set[int] = set()
    for position, statement in enumerate(tree.body):
        assert statement.end_lineno is not None
        own = set(range(statement.lineno - 1, statement.end_lineno))
        is_docstring = position == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if is_docstring or any(target == SMALL for target, _ in _assigned(statement)):
            drop |= own | _blank_before(lines, statement.lineno - 1)
    text = "".join(line for index, line in enumerate(lines) if index not in drop)
    return text.strip("\r\n") + "\n"


def _blank_before(lines: list[str], index: int) -> set[int]:
    blank: set[int] = set()
    while index > 0 and not lines[index - 1].strip():
        index -= 1
        blank.add(index)
    return blank


def _small_overrides(tree: ast.Module, name: str) -> dict[str, Any]:
    for statement in tree.body:
        for target, value in _assigned(statement):
            if target == SMALL:
                try:
                    overrides = ast.literal_eval(value)
                except ValueError:
                    overrides = None
                if not isinstance(overrides, dict) or not all(isinstance(key, str) for key in overrides):
                    raise BrokenReference(f'{name}: SMALL on line {statement.lineno} is not a literal dict such as {{"N": 64}}')
                return overrides
    return {}


def _assigned(statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    """(name, value) pairs of `N = v`, `N: int = v`, `M = N = v` and `M, N = v, w`; other statements assign nothing that SMALL can
    replace."""
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value is not None:
        return [(statement.target.id, statement.value)]
    if not isinstance(statement, ast.Assign):
        return []
    value = statement.value
    if all(isinstance(target, ast.Name) for target in statement.targets):
        return [(target.id, value) for target in statement.targets if isinstance(target, ast.Name)]
    if len(statement.targets) != 1:
        return []
    target = statement.targets[0]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = zip(target.elts, value.elts, strict=True)
        return [(element.id, item) for element, item in pairs if isinstance(element, ast.Name)]
    return []


def _parse(source: str, name: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError as error:
        where = f"line {error.lineno}: " if error.lineno else ""
        raise BrokenReference(f"{name}: {where}{error.msg}") from error
    except ValueError as error:  # Python 3.11 on a null byte
        raise BrokenReference(f"{name}: {error}") from error


def _split_init_inputs(value: Any, model: Any, name: str) -> tuple[list[Any], dict[str, Any]]:
    if isinstance(value, dict):
        return [], dict(value)
    if not isinstance(value, (list, tuple)):
        raise BrokenReference(f"{name}: get_init_inputs returned {type(value).__name__}; return a list of Model's arguments")
    if len(value) == 2 and isinstance(value[0], (list, tuple)) and isinstance(value[1], dict):
        names = set(inspect.signature(model).parameters)
        if set(value[1]) <= names:  # otherwise a Model that really takes a list and a dict
            return list(value[0]), dict(value[1])
    return list(value), {}


def is_config(value: Any) -> bool:
    """Whether a value is the configuration of a model of the Hugging Face hub."""
    transformers = sys.modules.get("transformers")
    return transformers is not None and isinstance(value, transformers.PretrainedConfig)


def _check_plain(value: Any, function: str, name: str) -> None:
    if isinstance(value, (list, tuple)):
        for item in value:
            _check_plain(item, function, name)
    elif isinstance(value, dict):
        _check_plain(list(value.values()), function, name)
    elif value is not None and not isinstance(value, (torch.Tensor, int, float, str, torch.dtype)) and not is_config(value):
        kind = type(value).__name__
        raise BrokenReference(f"{name}: {function} returned a {kind}; use tensors, Python scalars, or lists of these")


def _filename(name: str) -> str:
    return f"<{name}>"


def _describe(error: Exception, filename: str) -> str:
    """`TypeError on line 7: message`, on one line; the line is the last one in the reference's own text."""
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f" on line {line}" if line is not None else ""
    message = " ".join(str(error).split())
    absent = error.name if isinstance(error, ModuleNotFoundError) else None
    hint = f"; {INSTALL.get(absent, 'install it')}" if absent else ""
    return f"{type(error).__name__}{where}: {message}"[:300] + hint


@contextmanager
def _float32() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
