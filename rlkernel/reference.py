"""A reference file in KernelBench's format as a value: its model and its inputs. What is done to its text: `reference_text`.

The reference is trusted code and runs in this process; a broken one raises `BrokenReference`, one line that names the file.
"""

from __future__ import annotations

import inspect
import linecache
import sys
import types
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from rlkernel.errors import BrokenReference
from rlkernel.processor_time import OutOfTime, at_most
from rlkernel.records import is_record, values_of
from rlkernel.reference_text import apply_small, parsed
from rlkernel.seeds import WORDS, Stream, following, noting, seed_generators
from rlkernel.surroundings import NAMES_A_GPU, SETS, USUAL, Defaults, as_set, surrounded, surroundings
from rlkernel.types import FILE

REQUIRED = ("Model", "get_inputs")
INIT_INPUTS = "get_init_inputs"
"""The function that a file leaves out where the constructor takes nothing."""
FUNCTIONS = "Model, get_inputs, and get_init_inputs if Model needs arguments"
CANDIDATE = "ModelNew"
"""The class of a file that is no reference."""
FIXED = "FIXED"
IMPORT_SECONDS = 30.0
"""The processor time that importing a reference may take: libraries are imported, and nothing is computed."""
PLAIN = (torch.Tensor, int, float, complex, str, torch.dtype, torch.device, torch.memory_format, range, np.number, np.bool_)
"""What arguments are, and lists, dicts and records of these."""
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
    defaults: Defaults = USUAL
    """What the file has set of torch's defaults when it was loaded."""
    names_a_gpu: bool = False
    """Whether its text does."""
    sets: bool = False
    """Whether its text may change settings of the process."""

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
        if isinstance(model, nn.Module) and any(map(is_lazy, model.parameters())):
            raise BrokenReference(f"{self.name}: Model has parameters without a shape (nn.Lazy...); name the number of inputs")
        if not isinstance(model, nn.Module):
            raise BrokenReference(f"{self.name}: Model is not a torch.nn.Module; derive it from nn.Module")
        if self.defaults != USUAL or self.sets or (self.names_a_gpu and not torch.cuda.is_available()):
            return surrounded(model, self.defaults)
        return model

    def _call(self, what: str, seed: int, function: Callable[[], Any]) -> Any:
        with surroundings(self.defaults):
            try:
                if self.streams is None:
                    seed_generators(seed)
                    return function()
                with following(seed, self.streams):
                    return function()
            except (Exception, SystemExit) as error:  # any failure of the file's own code becomes one line about the file
                raise BrokenReference(f"{self.name}: {what} raised {describe(error, self.name)}") from error


def load_reference(source: str, *, small: bool, name: str = "reference") -> Reference:
    """Execute a reference file's text; with `small`, after `apply_small`. `name` stands in messages. Raises BrokenReference."""
    source = apply_small(source, name=name) if small else source.removeprefix("\ufeff")
    parsed(source, name)
    filename = _filename(name)
    # inspect.getsource and tracebacks find the text here; torch.jit and triton need it for functions without a file.
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    module = types.ModuleType(FILE)
    module.__file__ = filename
    namespace = vars(module)
    with surroundings(), noting() as streams, _imported(module):
        try:
            with at_most(IMPORT_SECONDS):
                exec(compile(source, filename, "exec", dont_inherit=True), namespace)
            defaults = as_set()
        except OutOfTime as error:
            took = f"importing it took more than {IMPORT_SECONDS:g} s of processor time{where(error, name)}"
            raise BrokenReference(f"{name}: {took}; compute in Model and get_inputs, not in the file's own lines") from None
        except (Exception, SystemExit) as error:  # any failure of the file's own code becomes one line about the file
            raise BrokenReference(f"{name}: importing it raised {describe(error, name)}") from error
    missing = [required for required in REQUIRED if not callable(namespace.get(required))]
    if not callable(namespace.get(INIT_INPUTS, list)):
        missing.append(INIT_INPUTS)
    if missing:
        raise BrokenReference(f"{name}: it defines no {', '.join(missing)}; a reference has {FUNCTIONS}{_misnamed(namespace)}")
    if INIT_INPUTS not in namespace and (needed := _needed(namespace["Model"])):
        raise BrokenReference(f"{name}: it defines no get_init_inputs, and Model needs {', '.join(needed)}")
    fixed = namespace.get(FIXED, ())
    if not isinstance(fixed, (tuple, list)) or not all(isinstance(pattern, str) for pattern in fixed):
        raise BrokenReference(f'{name}: FIXED is not a tuple of names of parameters, such as ("norm.weight",) or ("*",)')
    streams_of = tuple(streams) if any(word in source for word in WORDS) else None
    return Reference(name, namespace, streams_of, defaults, NAMES_A_GPU in source, any(word in source for word in SETS))


@contextmanager
def _imported(module: types.ModuleType) -> Iterator[None]:
    """Inside, the module is found by its name, as dataclasses look up what their annotations name."""
    before = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        if before is None:
            sys.modules.pop(module.__name__, None)  # its own text may have taken it out
        else:
            sys.modules[module.__name__] = before


def _misnamed(namespace: dict[str, Any]) -> str:
    """What to rename, where a file has no Model and its last module must be meant; or that it is no reference."""
    if CANDIDATE in namespace and "Model" not in namespace:
        return f"; it has a {CANDIDATE}, so it is a candidate, and the reference is named before it"
    modules = (name for name, one in namespace.items() if isinstance(one, type) and issubclass(one, nn.Module))
    mine = [name for name in modules if namespace[name].__module__ == FILE]
    return f"; rename {mine[-1]} to Model" if mine and "Model" not in namespace else ""


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
    elif is_config(value):
        return
    elif function == "get_init_inputs" and is_record(value):
        _check_plain(list(values_of(value).values()), function, name)
    elif value is not None and not isinstance(value, PLAIN):
        kind = type(value).__name__
        raise BrokenReference(f"{name}: {function} returned a {kind}; use tensors, Python scalars, or lists of these")


def _filename(name: str) -> str:
    return f"<{name}>"


def describe(error: BaseException, name: str) -> str:
    """`TypeError on line 7: message`, on one line; the line is the last one in the reference's own text."""
    message = " ".join(str(error).split())
    absent = error.name if isinstance(error, ModuleNotFoundError) else None
    hint = f"; {INSTALL.get(absent, 'install it')}" if absent else ""
    return f"{type(error).__name__}{where(error, name)}: {message}"[:300] + hint


def where(error: BaseException, name: str) -> str:
    """` on line 7`: the last line in the reference's own text that an error has passed; nothing where there is none."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _filename(name):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f" on line {line}" if line is not None else ""
