"""A reference file in KernelBench's format as a value: its model and its inputs. What is done to its text: `reference_text`.

The reference is trusted code and runs in this process; a broken one raises `BrokenReference`, one line that names the file.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from rlkernel.errors import BrokenReference
from rlkernel.processor_time import OutOfTime, at_most
from rlkernel.reference_text import apply_small, parsed
from rlkernel.seeds import WORDS, Stream, following, noting, seed_generators

REQUIRED = ("Model", "get_inputs")
INIT_INPUTS = "get_init_inputs"
"""The function that a file leaves out where the constructor takes nothing."""
FUNCTIONS = "Model, get_inputs, and get_init_inputs if Model needs arguments"
FIXED = "FIXED"
IMPORT_SECONDS = 30.0
"""The processor time that importing a reference may take: libraries are imported, and nothing is computed."""
LISTED = 8
"""How many names a message lists."""
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

    def check_fixed(self, names: Collection[str]) -> None:
        """Raise BrokenReference where a pattern of `FIXED` matches none of these names of parameters and buffers; "*" may."""
        for pattern in self.fixed:
            if pattern != "*" and not any(fnmatchcase(name, pattern) for name in names):
                known = ", ".join(list(names)[:LISTED]) + (", ..." if len(names) > LISTED else "")
                raise BrokenReference(
                    f"{self.name}: FIXED names {pattern}, but Model has no such parameter or buffer; it has {known or 'none'}"
                )

    def init_inputs(self, seed: int = 0) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments of `Model`. Raises BrokenReference.

        `get_init_inputs` may return a list of arguments, a dict of keyword arguments, or both as `[[...], {...}]`. Where there is
        none, there are no arguments.
        """
        if INIT_INPUTS not in self.namespace:
            return [], {}
        value = self._call(INIT_INPUTS, seed, self.namespace[INIT_INPUTS])
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
            except (Exception, SystemExit) as error:  # any failure of the file's own code becomes one line about the file
                raise BrokenReference(f"{self.name}: {what} raised {describe(error, self.name)}") from error


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
    parsed(source, name)
    filename = _filename(name)
    # inspect.getsource and tracebacks find the text here; torch.jit and triton need it for functions without a file.
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": "reference", "__file__": filename}
    with _float32(), noting() as streams:
        try:
            with at_most(IMPORT_SECONDS):
                exec(compile(source, filename, "exec", dont_inherit=True), namespace)
        except OutOfTime as error:
            took = f"importing it took more than {IMPORT_SECONDS:g} s of processor time{_where(error, name)}"
            raise BrokenReference(f"{name}: {took}; compute in Model and get_inputs, not in the file's own lines") from None
        except (Exception, SystemExit) as error:  # any failure of the file's own code becomes one line about the file
            raise BrokenReference(f"{name}: importing it raised {describe(error, name)}") from error
    missing = [required for required in REQUIRED if not callable(namespace.get(required))]
    if not callable(namespace.get(INIT_INPUTS, list)):
        missing.append(INIT_INPUTS)
    if missing:
        raise BrokenReference(f"{name}: it defines no {', '.join(missing)}; a reference has {FUNCTIONS}")
    if INIT_INPUTS not in namespace and (needed := _needed(namespace["Model"])):
        raise BrokenReference(f"{name}: it defines no get_init_inputs, and Model needs {', '.join(needed)}")
    fixed = namespace.get(FIXED, ())
    if not isinstance(fixed, (tuple, list)) or not all(isinstance(pattern, str) for pattern in fixed):
        raise BrokenReference(f'{name}: FIXED is not a tuple of names of parameters, such as ("norm.weight",) or ("*",)')
    return Reference(name, namespace, tuple(streams) if any(word in source for word in WORDS) else None)


def _needed(model: Any) -> list[str]:
    """The names of the arguments without which a class cannot be called."""
    try:
        parameters = inspect.signature(model).parameters.values()
    except (TypeError, ValueError):  # nobody knows
        return []
    open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one.name for one in parameters if one.default is inspect.Parameter.empty and one.kind not in open_ended]


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


def describe(error: BaseException, name: str) -> str:
    """`TypeError on line 7: message`, on one line; the line is the last one in the reference's own text."""
    message = " ".join(str(error).split())
    absent = error.name if isinstance(error, ModuleNotFoundError) else None
    hint = f"; {INSTALL.get(absent, 'install it')}" if absent else ""
    return f"{type(error).__name__}{_where(error, name)}: {message}"[:300] + hint


def _where(error: BaseException, name: str) -> str:
    """` on line 7`: the last line in the reference's own text that an error has passed; nothing where there is none."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _filename(name):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" on line {line}" if line is not None else ""


@contextmanager
def _float32() -> Iterator[None]:
    before = torch.get_default_dtype()
    _default_dtype(torch.float32)
    try:
        yield
    finally:
        _default_dtype(before)


def _default_dtype(dtype: torch.dtype) -> None:
    """Set the default, if it is another one: to look is much faster."""
    if torch.get_default_dtype() is not dtype:
        torch.set_default_dtype(dtype)
