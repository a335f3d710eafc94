"""The nodes of a Ray cluster, the places on them, and Ray's errors in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio.to_thread

from rlkernel.errors import UsageError, one_line
from rlkernel.evaluator.pool import LANES_PER_CORE


@dataclass(frozen=True, slots=True)
class Place:
    """Room for one actor on a node. `node` is Ray's id; `index` counts 0, 1, ... on a node with several GPUs."""

    node: str
    address: str
    index: int
    cpus: int
    gpu: bool

    def __str__(self) -> str:
        return f"{self.address} (node {self.node[:8]}{f', GPU actor {self.index}' if self.gpu else ''})"

    @property
    def lanes(self) -> int:
        """The number of evaluations at a time that `open_pool` would choose here."""
        return round(LANES_PER_CORE * self.cpus) + 1 if self.gpu else self.cpus


def find_places(nodes: Sequence[Mapping[str, Any]], *, gpu: bool) -> list[Place]:
    """Return the places on the living `nodes` (as `ray.nodes()` lists them): one per GPU, or one per node with CPUs."""
    found: list[Place] = []
    for node in nodes:
        if not node["Alive"]:
            continue
        cpus, count = int(node["Resources"].get("CPU", 0)), int(node["Resources"].get("GPU", 0))
        if gpu:
            found += [Place(node["NodeID"], node["NodeManagerAddress"], i, cpus // count, True) for i in range(count)]
        elif cpus:
            found.append(Place(node["NodeID"], node["NodeManagerAddress"], 0, cpus, False))
    return found


async def list_nodes(ray: Any) -> list[dict[str, Any]]:
    """Return the cluster's nodes as `ray.nodes()` has them, the dead ones too. Raises UsageError."""
    try:
        nodes: list[dict[str, Any]] = await anyio.to_thread.run_sync(ray.nodes)
    except ray.exceptions.RayError as error:
        raise UsageError(
            f"the Ray cluster does not tell its nodes: {last_line(error)}: the same command goes on when it does"
        ) from error
    return nodes


def last_line(error: BaseException) -> str:
    """Return the line that counts of one of Ray's errors: its last, the error of the node without its traceback."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, BaseException):
        return one_line(cause)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1][:200] if lines else ''}"
