"""Where actors may live, by what Ray says about its nodes."""

from __future__ import annotations

from typing import Any

from rlkernel.evaluator.ray.places import find_places


def test_places() -> None:
    def node(name: str, alive: bool = True, **resources: float) -> dict[str, Any]:
        return {"NodeID": name, "NodeManagerAddress": "10.0.0.1", "Alive": alive, "Resources": resources}

    nodes = [node("head"), node("small", CPU=2.0), node("large", CPU=64.0, GPU=4.0), node("gone", alive=False, CPU=8.0)]
    assert [(p.node, p.cpus, p.lanes) for p in find_places(nodes, gpu=False)] == [("small", 2, 2), ("large", 64, 64)]
    # 16 CPUs per GPU: 1.25 lanes each and one more, as `open_pool` has it
    found = find_places(nodes, gpu=True)
    assert [(p.node, p.index, p.cpus, p.lanes) for p in found] == [("large", index, 16, 21) for index in range(4)]
