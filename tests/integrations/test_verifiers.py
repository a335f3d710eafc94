"""The `verifiers` environment, loaded by its plugin's name and played by the package's own agent against a local endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.errors import UsageError
from rlkernel.integrations.service import Service, open_service
from rlkernel.sources.load import load
from rlkernel.types import Evaluation, Problem, Status
from tests.integrations.scripted_judge import Judge
from tests.policy.scripted_endpoint import Scripted, completion, serving

vf = pytest.importorskip("verifiers.v1", reason="verifiers tests (pip install 'rlkernel[verifiers]')")
loaders = pytest.importorskip("verifiers.v1.utils.loaders")

from rlkernel.integrations import verifiers as ours  # noqa: E402

SOURCE = "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
ENDS = "\ndef get_inputs():\n    return []\n\ndef get_init_inputs():\n    return []\n"


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of one problem, judged by a scripted evaluator."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))  # a harness's id is the name of a top-level module
    monkeypatch.setattr(ours, "open_service", lambda **_: open_service(Judge()))
    monkeypatch.setenv("SCRIPTED_KEY", "k")
    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "1_a.py").write_text(SOURCE + ENDS)
    return tmp_path


def play(suite: Path, script: Scripted, turns: int) -> Any:
    """The episode of the suite's first task."""
    raw = {
        "taskset": {"id": "rlkernel-verifiers", "problems": str(suite)},
        "agent": {"harness": {"id": "talking-harness"}},
        "turns": turns,
    }

    async def episode() -> Any:
        env = loaders.load_environment(loaders.resolve_env_config(raw))
        client = vf.EvalClientConfig(base_url=script.url, api_key_var="SCRIPTED_KEY")
        async with env.serving():
            return await env.run_episode(next(iter(env.taskset)), vf.ModelContext(model="m", client=client))

    with serving(script):
        return asyncio.run(episode())


def answers(*codes: str) -> Scripted:
    """An endpoint that answers its turns with these blocks of code; without a number, in prose."""

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        text = f"Fused.\n```python\nclass ModelNew: ...\n{codes[turn]}\n```" if codes[turn] else "I would rather not."
        reply = completion(text)
        reply["choices"][0]["index"] = 0
        reply["usage"]["total_tokens"] = 110
        return {**reply, "id": "r", "object": "chat.completion", "created": 0, "model": "m"}

    return Scripted(answer)


def test_a_conversation_has_a_prompt_feedback_and_the_best_answers_reward(suite: Path) -> None:
    script = answers("", "x = 2.0", "x = 1.0")
    episode = play(suite, script, turns=3)
    assert episode.ok, episode.errors
    (trace,) = episode.traces

    (problem,) = load(str(suite)).problems
    shown = KernelEnvironment("full")
    said = [[message["content"] for message in body["messages"] if message["role"] == "user"] for body in script.bodies]
    feedback = [
        shown.feedback(Evaluation(Status.NO_CODE, "")),
        shown.feedback(Evaluation(Status.CORRECT, "", speedup=2.0)),
    ]
    assert said[-1] == [shown.prompt(problem), *feedback]

    # 0; 0.5 + 0.5 * 2; 0.5 + 0.5 * 1
    turns = [trace.metrics[f"reward_turn_{turn}"] for turn in (1, 2, 3)]
    assert (trace.reward, turns) == (1.5, [0.0, 1.5, 1.0])
    assert (trace.metrics["correct"], trace.metrics["speedup"]) == (1.0, 2.0)


def test_an_evaluator_that_is_refused_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Service] = []

    @contextmanager
    def opening(**_: Any) -> Iterator[Service]:
        with open_service(Judge()) as service:
            opened.append(service)
            yield service

    def refuse(described: Any) -> None:
        raise UsageError("forged")

    monkeypatch.setattr(ours, "open_service", opening)
    monkeypatch.setattr(ours, "check_for_training", refuse)
    env = SimpleNamespace(config=SimpleNamespace(device="cpu", jobs=0))
    with pytest.raises(UsageError, match="forged"):
        asyncio.run(ours.KernelEnv.start(env))
    with pytest.raises(RuntimeError):
        opened[0].submit(Problem("p", 1, "train", SOURCE), "x = 2.0")


def test_what_our_side_fails_at_is_an_error_and_no_reward(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "Problem", lambda name, level, split, source: Problem(name, level, split, "broken"))
    episode = play(suite, answers("x = 2.0"), turns=1)
    assert not episode.ok and "no Model" in episode.errors[0].message
    assert all(trace.rewards == {} for trace in episode.traces)
