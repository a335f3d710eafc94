"""Through which arguments a compiled kernel really stores and loads, read from its TTIR."""

from __future__ import annotations

import re

from rlkernel.evaluator.program.first_call import Touched

_FUNCTION = re.compile(r"tt\.func public @\S+?\((.*?)\)(?: attributes| \{|$)", re.S)
_RESULT = re.compile(r"^\s*(%[\w.]+)(?::\d+)? = (.*)$")
_NAME = re.compile(r"%[\w.]+")
_ITER = re.compile(r"(%[\w.]+) = (%[\w.]+)")
_WRITES = (
    "tt.store",
    "tt.atomic_rmw",
    "tt.atomic_cas",
    "tt.descriptor_store",
    "tt.descriptor_reduce",
    "tt.descriptor_scatter",
    "tt.call",
)
_VALUES = ("tt.load", "tt.descriptor_load", "tt.descriptor_gather")
_READS = (*_VALUES, "tt.atomic_rmw", "tt.atomic_cas", "tt.descriptor_reduce", "tt.call")


def touched_arguments(ttir: str) -> Touched:
    """Names of the pointer parameters that a store, an atomic or a call may write through, and a load, an atomic or a call read.

    Provenance flows from pointer parameters through every operation except loads, so the answer is an upper bound.
    """
    header = _FUNCTION.search(ttir)
    if header is None:
        return Touched((), ())
    origin: dict[str, frozenset[str]] = {}
    for part in header.group(1).split("%")[1:]:
        name, _, kind = part.partition(":")
        if "!tt.ptr" in kind or "tensordesc" in kind:
            origin["%" + name.strip()] = frozenset({name.strip()})

    def of(text: str) -> frozenset[str]:
        return frozenset().union(*(origin.get(name, frozenset()) for name in _NAME.findall(text)))

    lines = ttir[header.end() :].splitlines()
    stored: frozenset[str] = frozenset()
    loaded: frozenset[str] = frozenset()
    for _ in range(2):  # twice, for what loops carry around
        open_results: list[str] = []
        for line in lines:
            body = line
            match = _RESULT.match(line)
            if match:
                name, body = match.group(1), match.group(2)
                if not body.startswith(_VALUES):
                    origin[name] = origin.get(name, frozenset()) | of(body)
                if body.startswith(("scf.for", "scf.if", "scf.while")):
                    open_results.append(name)
            if "iter_args" in body or "scf.while" in body:
                for inner, outer in _ITER.findall(body):
                    origin[inner] = origin.get(inner, frozenset()) | origin.get(outer, frozenset())
            if body.lstrip().startswith(("scf.yield", "scf.condition")) and open_results:
                for name in open_results:
                    origin[name] = origin.get(name, frozenset()) | of(body)
            operands = _NAME.findall(body)
            pointers = operands if "tt.call" in body else operands[:1]  # the pointer comes first
            through = frozenset[str]().union(*(origin.get(name, frozenset()) for name in pointers))
            if any(word in body for word in _WRITES):
                stored |= through
            if any(word in body for word in _READS):
                loaded |= through
    return Touched(tuple(sorted(stored)), tuple(sorted(loaded)))
