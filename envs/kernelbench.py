"""Problems in KernelBench's layout that name no `SMALL`: which sizes are judged, by one stated rule.

The rule: the module constants that are sizes (`sizes_of`) and exceed a limit are halved until they do not. Of the limits 2^20,
2^19, ... 1 the first is taken under which the reference runs and `Need` says that it fits; where no limit does, the same with
only those constants that `get_inputs` mentions and `get_init_inputs` does not. `Need` is counted on meta tensors. Where a problem
is itself replaced, those constants come first, so that the model stays as it is if that is enough.

On the CPU path a problem keeps its shape for tracing, compiling and modelled time; its results are compared at the reduced size,
which becomes its `SMALL`. On a GPU everything happens at the full shape. A problem is itself replaced by its reduced form only
where its reference needs more memory than an evaluation may have (GPU), or more operators than a trace may hold (an unrolled
recurrence). A problem without such a size is not dropped: it is `Unfit`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from rlkernel.errors import BrokenReference, first_line
from rlkernel.reference import SMALL, apply_small, load_reference
from rlkernel.types import Problem

LIMITS = tuple(1 << power for power in range(20, -1, -1))
INTERPRETED_ELEMENTS = 1 << 19
"""How many elements the inputs and all results of one forward's operators may have: what the interpreter does in a few
seconds."""
INTERPRETED_FLOPS = 1 << 28
INTERPRETED_WEIGHTS = 1 << 23
"""How many elements the weights may have, which are sent to the child that runs a candidate, once per round."""
OPERATORS = 4000
"""How many operators a forward may call; a trace holds 4096 steps."""
STRUCTURE = re.compile(r"kernel|stride|pad|dilat|group|head|n(um)?_?(layer|block|expert|stage)s?\b|seed", re.IGNORECASE)
"""Names of constants that say what a problem is, not how large."""

Sizes = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Need:
    """What one forward of a reference needs, counted on meta tensors in elements of 4 bytes."""

    inputs: int
    outputs: int
    weights: int
    largest: int
    """The number of elements of the largest tensor that an operator returns."""
    made: int
    """The number of elements of all tensors that operators return."""
    flops: int
    """Floating-point operations of matrix products and convolutions."""
    operators: int

    @property
    def traceable(self) -> bool:
        return self.operators <= OPERATORS

    @property
    def interpretable(self) -> bool:
        """Whether the CPU path can judge the problem."""
        small = self.inputs + self.made <= INTERPRETED_ELEMENTS
        return small and self.flops <= INTERPRETED_FLOPS and self.weights <= INTERPRETED_WEIGHTS

    @property
    def gpu_bytes(self) -> int:
        """About how many bytes a study of the reference holds at a time.

        These are the inputs twice and in float64, the outputs in both precisions, and in float64 an intermediate result that is
        larger than the outputs.
        """
        tensors = 4.5 * self.inputs + 3.5 * self.outputs + 4 * self.weights + 4 * max(0, self.largest - self.outputs)
        return int(4 * tensors)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A problem that can be judged, with the sizes of the constants that were reduced; none are if the file is taken as it is."""

    problem: Problem
    whole: Sizes
    """The reduced constants of the problem itself."""
    compared: Sizes
    """The reduced constants at which results are compared, on the CPU path."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """A problem that cannot be judged here, and why, in one line. Whoever scores counts and lists it."""

    problem: Problem
    reason: str


def fit_for_cpu(problem: Problem) -> Fitted | Unfit:
    """The problem with a `SMALL` by the rule, unless the file has one or is small by itself."""
    fitted = _fit_whole(problem, lambda need: need.traceable)
    if isinstance(fitted, Unfit) or SMALL in _assignments(problem.source):
        return fitted
    small = _first_fit(fitted.problem, lambda need: need.interpretable, _families(fitted.problem), INTERPRETED_ELEMENTS)
    if isinstance(small, Unfit):
        return small
    source = _with_small(fitted.problem.source, small) if small else fitted.problem.source
    return Fitted(replace(problem, source=source), fitted.whole, small)


def fit_for_gpu(problem: Problem, memory_bytes: int) -> Fitted | Unfit:
    """The problem as it is if it is traceable and `Need.gpu_bytes` is within `memory_bytes`, otherwise reduced as a whole."""
    return _fit_whole(problem, lambda need: need.traceable and need.gpu_bytes <= memory_bytes)


def _fit_whole(problem: Problem, fits: Callable[[Need], bool]) -> Fitted | Unfit:
    if SMALL in _assignments(problem.source):  # its author has chosen the sizes
        return Fitted(problem, {}, {})
    found = _first_fit(problem, fits, _families(problem)[::-1], None)
    if isinstance(found, Unfit):
        return found
    source = resize(problem.source, found, name=problem.name) if found else problem.source
    return Fitted(replace(problem, source=source), found, {})


def resize(source: str, sizes: Mapping[str, Any], *, name: str = "reference") -> str:
    """The file with other values of its constants. Raises BrokenReference if it cannot be used.

    >>> resize("N = 4096\\n", {"N": 8})
    'N = 8\\n'
    """
    line = _small_line(sizes)
    return apply_small(f"{source.rstrip()}\n{line}", name=name).removesuffix(line)


def sizes_of(source: str) -> Sizes:
    """The module constants that are sizes: whole numbers, products of these, and lists and tuples of them.

    Constants whose name says that they are structure (kernel, stride, padding, groups, heads, number of layers, ...) are left
    out.

    >>> sizes_of("batch = 2 * 64\\nshape = (32, 32)\\nkernel_size = 7\\nrate = 0.5\\n")
    {'batch': 128, 'shape': (32, 32)}
    """
    return {name: value for name, value in _assignments(source).items() if _is_size(value) and not STRUCTURE.search(name)}


def reduced(sizes: Mapping[str, Any], limit: int) -> Sizes:
    """The sizes above `limit`, halved until they are not. Divisors stay divisors, as far as halving goes.

    >>> reduced({"N": 96, "M": 24, "shape": (100, 4)}, 32)
    {'N': 24, 'shape': (25, 4)}
    """
    found = {name: _halved(value, limit) for name, value in sizes.items()}
    return {name: value for name, value in found.items() if value != sizes[name]}


def need(source: str, name: str, most: int | None = None) -> Need:
    """Count what one forward of the file needs.

    Raises BrokenReference for a file that cannot be used, TooLarge once more than OPERATORS have run or more than `most` elements
    were made, and whatever forward raises on meta tensors.
    """
    reference = load_reference(source, small=False, name=name)
    with torch.device("meta"), torch.no_grad():
        inputs = reference.inputs(0)
        model = reference.model(0)
        counter, flops = _Made(most), FlopCounterMode(display=False)
        with flops, counter:
            output = model(*inputs)
    weights = sum(t.numel() for t in [*model.parameters(), *model.buffers()])
    total = int(flops.get_total_flops())
    return Need(_elements(inputs), _elements(output), weights, counter.largest, counter.made, total, counter.operators)


class TooLarge(Exception):
    """A reference was stopped in the middle, because it is known not to fit."""


class _Made(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the elements that operators return; a view makes none."""

    def __init__(self, most: int | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.made = self.largest = self.operators = 0
        self._most = most

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.operators += 1
        if not func.is_view:
            count = _elements(result)
            self.made += count
            self.largest = max(self.largest, count)
        if self.operators > OPERATORS:
            raise TooLarge(f"forward has more than {OPERATORS} operators")
        if self._most is not None and self.made > self._most:
            raise TooLarge(f"forward makes more than {self._most:,} elements")
        return result


def _elements(value: Any) -> int:
    return sum(leaf.numel() for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor))


def _families(problem: Problem) -> list[Sizes]:
    """The two sets of sizes that may be reduced: all, and those of the inputs alone."""
    sizes, free = sizes_of(problem.source), _free_names(problem.source)
    return [sizes, {name: value for name, value in sizes.items() if name in free}]


def _first_fit(problem: Problem, fits: Callable[[Need], bool], families: Sequence[Sizes], most: int | None) -> Sizes | Unfit:
    """The reduced constants under the first limit that fits. There are none when nothing needs to be reduced."""
    tried: list[Sizes] = []
    reason = ""
    for family in families:
        for limit in (1 << 62, *LIMITS):
            candidate = reduced(family, limit)
            if candidate in tried:
                continue
            tried.append(candidate)
            try:
                source = resize(problem.source, candidate, name=problem.name) if candidate else problem.source
                found = need(source, problem.name, most)
            except BrokenReference as error:
                if not candidate:
                    return Unfit(problem, str(error))
                continue
            except TooLarge as error:
                reason = str(error)
                continue
            except Exception as error:  # the file's own code, which may refuse a size
                if not candidate:
                    reason = f"forward raises {type(error).__name__} on tensors without data: {first_line(error)[:160]}"
                continue
            if fits(found):
                return candidate
            reason = f"{found.inputs + found.made:,} elements, {found.weights:,} weights and {found.flops:,} flops are too many"
    return Unfit(problem, f"{problem.name}: no size fits; of the least that was tried, {reason}")


def _free_names(source: str) -> set[str]:
    """The names that `get_inputs` mentions and `get_init_inputs` does not."""
    used: dict[str, set[str]] = {"get_inputs": set(), "get_init_inputs": set()}
    for statement in ast.parse(source.removeprefix("\ufeff")).body:
        if isinstance(statement, ast.FunctionDef) and statement.name in used:
            used[statement.name] |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return used["get_inputs"] - used["get_init_inputs"]


def _with_small(source: str, sizes: Mapping[str, Any]) -> str:
    return f"{source.rstrip()}\n{_small_line(sizes)}"


def _small_line(sizes: Mapping[str, Any]) -> str:
    return f"{SMALL} = {dict(sizes)!r}\n"


def _assignments(source: str) -> dict[str, Any]:
    """The constants of a module by name, with None for values that are no constants."""
    found: dict[str, Any] = {}
    for statement in ast.parse(source.removeprefix("\ufeff")).body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value is not None:
            found[statement.target.id] = _constant(statement.value)
        if isinstance(statement, ast.Assign):
            pairs: Iterable[tuple[ast.expr, ast.expr]] = [(target, statement.value) for target in statement.targets]
            if len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Tuple):
                values = statement.value.elts if isinstance(statement.value, ast.Tuple) else []
                pairs = zip(statement.targets[0].elts, values, strict=False)
            found |= {target.id: _constant(value) for target, value in pairs if isinstance(target, ast.Name)}
    return found


def _constant(value: ast.expr) -> Any:
    """The value of a whole number, of arithmetic on such, or of a list or tuple of them; None for anything else."""
    if isinstance(value, ast.Constant):
        return value.value if type(value.value) is int else None
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Pow, ast.FloorDiv, ast.Add, ast.Sub, ast.LShift)):
        left, right = _constant(value.left), _constant(value.right)
        return eval(compile(ast.Expression(value), "<constant>", "eval")) if type(left) is type(right) is int else None
    if isinstance(value, (ast.Tuple, ast.List)):
        items = [_constant(item) for item in value.elts]
        return None if None in items else (tuple(items) if isinstance(value, ast.Tuple) else items)
    return None


def _is_size(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return bool(value) and all(_is_size(item) for item in value)
    return type(value) is int and value > 0


def _halved(value: Any, limit: int) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_halved(item, limit) for item in value)
    while value > limit:
        value //= 2
    return value


def describe(fitted: Sequence[Fitted | Unfit]) -> dict[str, Any]:
    """What a manifest says of the problems: which have other sizes, and which cannot be judged."""
    found = [f for f in fitted if isinstance(f, Fitted)]
    return {
        "resized": {f.problem.name: f.whole for f in found if f.whole},
        "compared_at": {f.problem.name: f.compared for f in found if f.compared},
        "unfit": {f.problem.name: f.reason for f in fitted if isinstance(f, Unfit)},
    }
