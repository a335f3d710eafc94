"""The environment for `verifiers`, where that is installed: loaded as a plugin, and a reply scored as its runs do."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import Any

import pytest

from envs.problems import load_suite
from tests.red_team import cases

vf = pytest.importorskip("verifiers.v1", reason="verifiers tests (pip install verifiers)")
HONEST = (Path(__file__).parents[1] / "red_team" / "hostile" / "honest.py").read_text()


def test_problems_are_tasks_and_a_reply_is_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))  # a plugin's id is the name of a module
    ours: Any = importlib.import_module("verifiers_kernels")
    config = ours.KernelTasksetConfig(id="verifiers_kernels", task=ours.KernelTaskConfig(device="cpu", jobs=1))
    taskset = vf.load_taskset(config)
    tasks = list(taskset)
    assert [task.data.name for task in tasks] == [p.name for p in load_suite() if p.split == "train"]
    assert "def get_inputs" in tasks[0].data.prompt_text

    relu = cases.relu()
    data = ours.KernelData(name=relu.name, prompt="Rewrite.", level=1, reference=relu.source)
    task = ours.KernelTask(data, config.task)
    for reply, reward, correct in ((f"Fused.\n```python\n{HONEST}```", 1.0, 1.0), ("I would rather not.", 0.0, 0.0)):
        trace = trace_of(task, reply)
        asyncio.run(task.score(trace))
        assert trace.reward == pytest.approx(reward) and trace.metrics["correct"] == correct


def trace_of(task: object, reply: str) -> object:
    """As a harness would leave it after one reply."""
    data = task.data  # type: ignore[attr-defined]
    trace = vf.Trace(
        task=vf.TraceTask(type=type(task).__name__, data=data),
        agent=vf.AgentInfo.model_construct(),
    )
    trace.root_reply = reply
    return trace
