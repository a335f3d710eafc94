"""The GPU's room on a machine without a GPU: its modules, and guarded memory on the CPU."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

ROOM = "rlkernel.evaluator.gpu"
MODULES = (
    "driver",
    "guards",
    "stopwatch",
    "fused",
    "fused_errors",
    "checks",
    "measuring",
    "further",
    "problem",
    "trials",
    "queue",
    "places",
    "tuning",
    "subject",
    "rounds",
    "session",
    "runner",
)
BINDINGS = ("cuda", "cuda.bindings", "cuda.bindings.driver", "cuda.bindings.nvrtc")


def _has_bindings() -> bool:
    try:
        return importlib.util.find_spec("cuda.bindings.driver") is not None
    except ModuleNotFoundError:
        return False


@pytest.fixture(scope="session")
def imported() -> Iterator[SimpleNamespace]:
    """The modules of the room. Where cuda-bindings is missing, empty modules stand in for it, and nothing of it stays."""
    absent = not _has_bindings()
    before = set(sys.modules)
    if absent:
        for name in BINDINGS:
            sys.modules[name] = ModuleType(name)
        sys.modules["cuda.bindings"].driver = sys.modules["cuda.bindings.driver"]  # type: ignore[attr-defined]
        sys.modules["cuda.bindings"].nvrtc = sys.modules["cuda.bindings.nvrtc"]  # type: ignore[attr-defined]
    try:
        modules = {name: importlib.import_module(f"{ROOM}.{name}") for name in MODULES}
    finally:
        if absent:
            for name in set(sys.modules) - before:
                package, _, module = name.rpartition(".")
                if package == ROOM:
                    delattr(sys.modules[ROOM], module)
                if package == ROOM or name in BINDINGS:
                    del sys.modules[name]
    yield SimpleNamespace(**modules)


@pytest.fixture
def room(imported: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The room with its memory on the CPU and small red zones; nothing there waits for a device."""
    cpu = torch.device("cpu")
    for module in (imported.guards, imported.problem, imported.subject, imported.trials):
        monkeypatch.setattr(module, "CUDA", cpu)
    monkeypatch.setattr(imported.guards, "ZONE", 4096)
    monkeypatch.setattr(imported.guards, "_noise", None)
    for module in (imported.checks, imported.subject, imported.tuning, imported.trials):
        monkeypatch.setattr(module, "settle", lambda seconds: None)
    for module in (imported.checks, imported.trials):
        monkeypatch.setattr(module, "kept", torch.clone)
    monkeypatch.setattr(imported.subject, "stream", lambda: SimpleNamespace(cuda_stream=0))
    return imported
