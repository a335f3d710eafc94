"""The names and numbers by which a reference file's `get_inputs` makes tensors, and what each of them stands for there."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from rlkernel.evaluator.judging.sizes.constants import sizes_of

HOISTED = 8
"""Numbers below this are rarely sizes."""
IMAGE = 4
"""The places of a tensor of images at least: which one, its channels, its rows and its columns."""


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
    full = sizes_of(source)
    found: dict[str, int] = {}
    for place, beside in _side_by_side(source):
        if isinstance(place, ast.Name) and isinstance(beside, ast.Constant) and type(beside.value) is int:
            whole = full.get(place.id)
            if type(whole) is int and 1 < beside.value < min(HOISTED, whole):
                found[place.id] = max(found.get(place.id, 0), beside.value)
    return found


def names_beside(source: str) -> list[tuple[str, str]]:
    r"""The pairs of names that stand in the same place of two tensors of as many places, the one that is larger first.

    >>> names_beside("Q, K = 16, 4\ndef get_inputs():\n    return [torch.rand(9, Q, 64), torch.rand(9, K, 64)]\n")
    [('Q', 'K')]
    """
    full = {name: value for name, value in sizes_of(source).items() if type(value) is int}
    pairs = [(a.id, b.id) for a, b in _side_by_side(source) if isinstance(a, ast.Name) and isinstance(b, ast.Name)]
    return sorted({(a, b) for a, b in pairs if a in full and b in full and full[a] > full[b]})


def _side_by_side(source: str) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What stands in the same place of two tensors of as many places, either way around."""
    made = [*_made_in_inputs(source)]
    for places in made:
        for other in made:
            if len(other) == len(places):
                yield from zip(places, other, strict=True)


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
