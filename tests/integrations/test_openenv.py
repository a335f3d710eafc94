"""The OpenEnv environment, through the package's own client, over a socket of 127.0.0.1."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.integrations.service import open_service
from rlkernel.types import Problem
from tests.integrations.scripted_judge import Judge

pytest.importorskip("openenv.core", reason="OpenEnv tests (pip install 'rlkernel[openenv]')")
uvicorn = pytest.importorskip("uvicorn")

from rlkernel.integrations.openenv.client import KernelEnv  # noqa: E402
from rlkernel.integrations.openenv.models import KernelAction  # noqa: E402
from rlkernel.integrations.openenv.server import Task, app  # noqa: E402

SOURCE = "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
PROBLEMS = {name: Problem(name, 1, "train", SOURCE) for name in ("level1/a", "level1/b")}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with open_service(Judge()) as service, socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app(Task(service, PROBLEMS, turns=2)), log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        listening.listen()  # a client that comes early waits in the queue
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def answer(speedup: float) -> KernelAction:
    return KernelAction(message=f"Fused.\n```python\nclass ModelNew: ...\nx = {speedup}\n```")


def test_a_conversation_has_a_prompt_feedback_rewards_and_an_end(address: str) -> None:
    with KernelEnv(base_url=address).sync() as env:
        began = env.reset(problem="level1/b")
        told = began.observation
        assert (told.problem, told.turn, began.done, began.reward) == ("level1/b", 0, False, None)
        assert told.message == KernelEnvironment("full").prompt(PROBLEMS["level1/b"])

        first = env.step(KernelAction(message="I would rather not."))
        assert (first.reward, first.done, first.observation.turn) == (0.0, False, 1)
        assert first.observation.evaluation["status"] == "no_code"
        assert first.observation.message.startswith("status: no_code")

        last = env.step(answer(2.0))
        # 0.5 + 0.5 * 2
        assert (last.reward, last.done, last.observation.message) == (1.5, True, "")
        assert last.observation.evaluation["speedup"] == 2.0
        assert env.state().step_count == 2
        assert env.reset(seed=3).observation.problem == env.reset(seed=3).observation.problem


def test_clients_have_conversations_of_their_own(address: str) -> None:
    with KernelEnv(base_url=address).sync() as one, KernelEnv(base_url=address).sync() as other:
        one.reset(problem="level1/a")
        other.reset(problem="level1/b")
        one.step(answer(1.0))
        assert (other.step(answer(1.0)).observation.turn, one.step(answer(3.0)).observation.turn) == (1, 2)


@pytest.mark.parametrize("problem", ["level1/c", "../etc"])
def test_a_problem_that_the_server_does_not_have_is_told(address: str, problem: str) -> None:
    with KernelEnv(base_url=address).sync() as env, pytest.raises(RuntimeError, match="unknown problem"):
        env.reset(problem=problem)


def test_an_answer_outside_of_a_conversation_is_told(address: str) -> None:
    with KernelEnv(base_url=address).sync() as env, pytest.raises(RuntimeError, match="call reset first"):
        env.step(answer(1.0))
