"""Which arguments a compiled kernel really stores to, read from its TTIR."""

from __future__ import annotations

import re

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


def stored_arguments(ttir: str) -> frozenset[str]:
    """Names of the pointer parameters that a store, an atomic or a call may write through.

    Provenance flows from pointer parameters through every operation except loads, so the answer is an upper bound.
    """
    header = _FUNCTION.search(ttir)
    if header is None:
        return frozenset()
    origin: dict[str, frozenset[str]] = {}
    for part in header.group(1).split("%")[1:]:
        name, _, kind = part.partition(":")
        if "!tt.ptr" in kind or "tensordesc" in kind:
            origin["%" + name.strip()] = frozenset({name.strip()})

    def of(text: str) -> frozenset[str]:
        return frozenset().union(*(origin.get(name, frozenset()) for name in _NAME.findall(text)))

    lines = ttir[header.end() :].splitlines()
    stored: frozenset[str] = frozenset()
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
            if any(word in body for word in _WRITES):
                operands = _NAME.findall(body)
                written = operands if "tt.call" in body else operands[:1]  # the pointer comes first
                stored |= frozenset().union(*(origin.get(name, frozenset()) for name in written))
    return stored
