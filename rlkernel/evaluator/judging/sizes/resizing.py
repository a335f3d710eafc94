"""The sizes among a reference file's module constants: which there are, halved ones, and the file with others in their place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rlkernel.reference_text import SMALL, apply_small, is_size

STRUCTURE = re.compile(r"kernel|stride|pad|dilat|group|head|n(um)?_?(layer|block|expert|stage)s?\b|seed", re.IGNORECASE)
"""Names of constants that say what a problem is, not how large."""
SHAPE = re.compile(r"kernel|stride|pad|dilat|n(um)?_?(layer|block|stage)s?\b|seed", re.IGNORECASE)
"""Names of constants that stay even where all others are divided by one number."""

HOISTED = 8
"""Numbers below this are rarely sizes."""
IMAGE = 4
"""The places of a tensor of images at least: which one, its channels, its rows and its columns."""

Sizes = dict[str, Any]


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
    return {name: value for name, value in _assignments(source).items() if is_size(value) and not STRUCTURE.search(name)}


def counts_of(source: str) -> Sizes:
    """The sizes, and besides those constants that must keep their ratio to them, such as numbers of groups and heads.

    >>> counts_of("features = 512\\ngroups = 8\\nkernel_size = 7\\n")
    {'features': 512, 'groups': 8}
    """
    return {name: value for name, value in _assignments(source).items() if is_size(value) and not SHAPE.search(name)}


def reduced(sizes: Mapping[str, Any], limit: int) -> Sizes:
    """The sizes above `limit`, halved until they are not. Divisors stay divisors, as far as halving goes.

    >>> reduced({"N": 96, "M": 24, "shape": (100, 4)}, 32)
    {'N': 24, 'shape': (25, 4)}
    """
    found = {name: _halved(value, limit) for name, value in sizes.items()}
    return {name: value for name, value in found.items() if value != sizes[name]}


def apart(sizes: Mapping[str, Any], full: Mapping[str, Any], fixed: Iterable[int] = ()) -> Sizes:
    """Reduced sizes, of which no two are equal that differ at full size: the smaller one there is halved further. Otherwise a
    kernel that takes one for the other would be right. `full`: the sizes that may be reduced, at full size; `fixed`: numbers of
    groups and the like, which they differ from as well.

    >>> apart({"M": 256, "N": 256}, {"M": 1024, "N": 8192, "K": 64})
    {'M': 128, 'N': 256}
    >>> apart({"shape": (32, 32), "groups": 4}, {"shape": (512, 128)})
    {'shape': (32, 16), 'groups': 4}
    >>> apart({"features": 16}, {"features": 512}, fixed=(16,))
    {'features': 8}
    """
    full = {name: value for name, value in full.items() if not is_nested(value)}
    found = {name: list(numbers_of(sizes.get(name, value))) for name, value in full.items()}
    places = [(value, name, place) for name, size in full.items() for place, value in enumerate(numbers_of(size))]
    taken = {number: number for number in fixed}
    for value, name, place in sorted(places, key=lambda one: -one[0]):
        now = found[name][place]
        while now > 1 and taken.get(now, value) != value:
            now //= 2
        taken.setdefault(now, value)
        found[name][place] = now
    made = {
        name: type(value)(found[name]) if isinstance(value, (tuple, list)) else found[name][0] for name, value in full.items()
    }
    return dict(sizes) | {name: value for name, value in made.items() if value != full[name]}


def doubled(sizes: Mapping[str, Any], full: Mapping[str, Any]) -> Sizes:
    """Reduced sizes times two, up to the full ones.

    >>> doubled({"M": 128, "shape": (32, 16)}, {"M": 1024, "shape": (512, 16)})
    {'M': 256, 'shape': (64, 16)}
    """

    def twice(value: Any, whole: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(map(twice, value, whole))
        return min(2 * value, whole)

    return {name: twice(value, full[name]) if name in full else value for name, value in sizes.items()}


def twos(sizes: Mapping[str, Any], full: Mapping[str, Any]) -> Sizes:
    """Reduced sizes with 2 for each number that has become 1.

    >>> twos({"M": 1, "shape": (1, 1, 8)}, {"M": 512, "shape": (4, 1, 64)})
    {'M': 2, 'shape': (2, 1, 8)}
    """

    def two(value: Any, whole: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(map(two, value, whole))
        return 2 if value == 1 and whole > 1 else value

    return {name: two(value, full[name]) if name in full else value for name, value in sizes.items()}


def numbers_of(size: Any) -> tuple[int, ...]:
    """The numbers of a size, from left to right.

    >>> numbers_of(4), numbers_of((3, [4, 5]))
    ((4,), (3, 4, 5))
    """
    return tuple(number for item in size for number in numbers_of(item)) if isinstance(size, (tuple, list)) else (size,)


def is_nested(size: Any) -> bool:
    """Whether a size has lists in a list.

    >>> is_nested((3, 4)), is_nested((3, [4]))
    (False, True)
    """
    return isinstance(size, (tuple, list)) and any(isinstance(item, (tuple, list)) for item in size)


def is_longer(sizes: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
    """Whether a size is larger than the other of its name. A name that is not among reduced sizes has its full size.

    >>> is_longer({"M": 512, "N": 16}, {"M": 128, "N": 32}), is_longer({"M": 8, "N": 16}, {"M": 8}), is_longer({"M": 8}, {"N": 4})
    (True, False, True)
    """
    pairs = [(numbers_of(sizes[name]), numbers_of(value)) for name, value in others.items() if name in sizes]
    return len(pairs) < len(others) or any(a > b for mine, own in pairs for a, b in zip(mine, own, strict=False))


def shortest(sizes: Mapping[str, Any], others: Mapping[str, Any]) -> Sizes:
    """The smaller of each pair of reduced sizes, number by number. A name that is not among them has its full size.

    >>> shortest({"M": 512, "image": (64, 8)}, {"M": 128, "image": (32, 16), "N": 4})
    {'M': 128, 'image': (32, 8), 'N': 4}
    >>> shortest({"M": 512, "image": (64, 8)}, {"M": (128, 2), "image": (4, 4, 4)})
    {'M': 512, 'image': (64, 8)}
    """
    return {**others, **{name: map_numbers(min, value, others.get(name, value)) for name, value in sizes.items()}}


def map_numbers(function: Any, value: Any, other: Any) -> Any:
    """A function of a size's numbers, each with that of another size in its place, or with one number; the size as it is where
    the other one has another nesting."""
    if isinstance(value, (tuple, list)):
        others = other if isinstance(other, (tuple, list)) else [other] * len(value)
        if len(others) != len(value):
            return value
        return type(value)(map_numbers(function, a, b) for a, b in zip(value, others, strict=True))
    return value if isinstance(other, (tuple, list)) else function(value, other)


def divided(sizes: Mapping[str, Any], factor: int) -> Sizes:
    """The sizes divided by one number, at least 1 each, so that they keep their ratios.

    >>> divided({"features": 512, "groups": 8, "channels": 3}, 4)
    {'features': 128, 'groups': 2, 'channels': 1}
    """
    found = {name: _divided(value, factor) for name, value in sizes.items()}
    return {name: value for name, value in found.items() if value != sizes[name]}


def _divided(value: Any, factor: int) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_divided(item, factor) for item in value)
    return max(1, value // factor)


def largest_of(value: Any) -> int:
    """The largest number of a size."""
    return max(map(largest_of, value)) if isinstance(value, (tuple, list)) else int(value)


def free_names(source: str) -> set[str]:
    """The names that `get_inputs` mentions and `get_init_inputs` does not, each with the functions of the file that it calls."""
    inputs, init_inputs = (_mentioned(making(source, name)) for name in ("get_inputs", "get_init_inputs"))
    return inputs - init_inputs


def making(source: str, *names: str) -> list[ast.FunctionDef]:
    """The functions of a file that have these names, and those that they mention."""
    body = ast.parse(source.removeprefix("\ufeff")).body
    functions = {one.name: one for one in body if isinstance(one, ast.FunctionDef)}
    found = [functions[name] for name in names if name in functions]
    for one in found:  # which grows
        found += [functions[name] for name in sorted(_mentioned([one])) if name in functions and functions[name] not in found]
    return found


def _mentioned(functions: Iterable[ast.FunctionDef]) -> set[str]:
    return {node.id for function in functions for node in ast.walk(function) if isinstance(node, ast.Name)}


def batch_names(source: str) -> set[str]:
    """The names that `get_inputs`, or a function that it calls, gives first where it makes a tensor: how many there are of what a
    module works on.

    >>> sorted(batch_names("def get_inputs():\\n    return [torch.rand(B, 3, H), torch.zeros((N, H))]\\n"))
    ['B', 'N']
    """
    return {place.id for places in _made_in_inputs(source) for place in places[:1] if isinstance(place, ast.Name)}


def leading_names(source: str) -> set[str]:
    """The names that `get_inputs` gives before the last two places of tensors alone: a batch, and groups or heads in it.

    >>> sorted(leading_names("def get_inputs():\\n    return [torch.rand(2, H, N, C), torch.rand(H, C)]\\n"))
    []
    >>> sorted(leading_names("def get_inputs():\\n    return [torch.rand(2, H, N, C), torch.rand(N, C)]\\n"))
    ['H']
    """
    before, after = set(), set()
    for places in _made_in_inputs(source):
        names = [place.id if isinstance(place, ast.Name) else None for place in places]
        before |= {name for name in names[:-2] if name}
        after |= {name for name in names[-2:] if name}
    return before - after


def least_beside(source: str) -> dict[str, int]:
    r"""For each name that stands where another tensor of as many places has a smaller number that stays: the largest one.

    >>> least_beside("H = 16\ndef get_inputs():\n    return [torch.rand(9, H, 64), torch.rand(9, 4, 64), torch.rand(H, 2)]\n")
    {'H': 4}
    """
    full, made = sizes_of(source), [*_made_in_inputs(source)]
    found: dict[str, int] = {}
    for places in made:
        pairs = (pair for other in made if len(other) == len(places) for pair in zip(places, other, strict=True))
        for place, beside in pairs:
            if isinstance(place, ast.Name) and isinstance(beside, ast.Constant) and type(beside.value) is int:
                whole = full.get(place.id)
                if type(whole) is int and 1 < beside.value < min(HOISTED, whole):
                    found[place.id] = max(found.get(place.id, 0), beside.value)
    return found


def image_names(source: str) -> set[str]:
    """The names that `get_inputs` gives first and second where it makes tensors of four places and more: a batch of images, and
    their channels.

    >>> sorted(image_names("def get_inputs():\\n    return [torch.rand(N, C, H, W), torch.rand(N, K)]\\n"))
    ['C', 'N']
    """
    made = (places[:2] for places in _made_in_inputs(source) if len(places) >= IMAGE)
    return {place.id for places in made for place in places if isinstance(place, ast.Name)}


def _made_in_inputs(source: str) -> Iterator[list[ast.expr]]:
    """What `get_inputs`, or a function that it calls, gives by place in each of its calls, or in the tuple that stands first."""
    for node in (node for function in making(source, "get_inputs") for node in ast.walk(function)):
        if isinstance(node, ast.Call) and node.args:
            first = node.args[0]
            yield first.elts if isinstance(first, (ast.Tuple, ast.List)) and first.elts else node.args


def with_small(source: str, sizes: Mapping[str, Any]) -> str:
    """The file with these sizes as its `SMALL`."""
    return f"{source.rstrip()}\n{_small_line(sizes)}"


def _small_line(sizes: Mapping[str, Any]) -> str:
    return f"{SMALL} = {dict(sizes)!r}\n"


def has_small(source: str) -> bool:
    """Whether the file says itself at which sizes results are compared."""
    return SMALL in _assignments(source)


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
    """The value of a whole number, of arithmetic on such, or of a list or tuple of them, which may be repeated; None for anything
    else."""
    if isinstance(value, ast.Constant):
        return value.value if type(value.value) is int else None
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Pow, ast.FloorDiv, ast.Add, ast.Sub, ast.LShift)):
        left, right = _constant(value.left), _constant(value.right)
        repeated = isinstance(value.op, ast.Mult) and isinstance(left, list) and type(right) is int
        whole = repeated or type(left) is type(right) is int
        return eval(compile(ast.Expression(value), "<constant>", "eval")) if whole else None
    if isinstance(value, (ast.Tuple, ast.List)):
        items = [_constant(item) for item in value.elts]
        return None if None in items else (tuple(items) if isinstance(value, ast.Tuple) else items)
    return None


def _halved(value: Any, limit: int) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_halved(item, limit) for item in value)
    while value > limit:
        value //= 2
    return value
