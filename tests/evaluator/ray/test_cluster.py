"""A real Ray cluster on this machine: the local pool's verdicts, and nothing lost or said twice when actors and nodes die.

Its start is the price of this file, so both tests share it. One of them has the real actor, which imports torch and opens a
pool; what dies in the other one is an actor without either.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import psutil
import pytest

from rlkernel.commands import cli
from rlkernel.errors import UsageError
from rlkernel.evaluator.config import EvaluatorConfig, Limits
from rlkernel.evaluator.ray import worker as ray_worker
from rlkernel.evaluator.ray.pool import RayPool, open_ray_pool
from rlkernel.types import Evaluation, Problem, Seconds, Status
from tests.evaluator.ray.light_actor import LightActor
from tests.red_team.cases import FOLDER as RED_TEAM
from tests.red_team.cases import load

PATIENT = EvaluatorConfig(limits=Limits(trace_seconds=300))
"""A candidate that sleeps holds its lane for as long as this test may take."""
HOSTILE = ("kill_parent", "kill_all", "exit_forward", "zeros", "syntax")
HONEST = ("center_rows",)
NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
DEATH = {"health_check_initial_delay_ms": 100, "health_check_period_ms": 200}
"""Makes Ray notice the death of a node within a second, and not within a quarter of a minute."""
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


class OwnCluster:
    """A cluster in a directory of its own, with one node of one CPU until there are more."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self._me = psutil.Process()
        self._before = set(self._me.children(recursive=True))
        self._started: set[psutil.Process] = set()
        self.ray = Cluster(initialize_head=True, head_node_args={**NODE, "_system_config": DEATH})

    def note_processes(self) -> None:
        """Remember what runs now; to be called before something ends."""
        self._started.update(set(self._me.children(recursive=True)) - self._before)

    def close(self) -> None:
        self.note_processes()
        self.ray.shutdown()
        deadline = time.monotonic() + 30
        while (left := [process for process in self._started if _running(process)]) and time.monotonic() < deadline:
            psutil.wait_procs(left, timeout=0.1)
        assert left == []


def _running(process: psutil.Process) -> bool:
    """A zombie has ended, whoever should have noticed it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(scope="module")
def cluster() -> Iterator[OwnCluster]:
    """The cluster of this file; afterwards none of its processes is left."""
    pytest.importorskip("ray", reason="cluster tests (pip install ray)")
    with tempfile.TemporaryDirectory(prefix="ray-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("OMP_NUM_THREADS", "1")
        own = OwnCluster()
        try:
            yield own
        finally:
            own.close()


async def judge_all(pool: RayPool, jobs: list[tuple[Problem, str]]) -> list[Evaluation]:
    """Evaluate side by side; the results are in order, and every evaluation is counted when it answers."""
    found: dict[int, Evaluation] = {}

    async def one(index: int) -> None:
        result = await pool.evaluate(*jobs[index])
        assert index not in found
        found[index] = replace(result, seconds=Seconds())

    async with anyio.create_task_group() as tasks:
        for index in range(len(jobs)):
            tasks.start_soon(one, index)
    return [found[index] for index in range(len(jobs))]


async def test_a_cluster_gives_the_local_verdicts(cluster: OwnCluster, relu: Problem) -> None:
    cases = [*(load("hostile")[name] for name in HOSTILE), *(load("honest")[name] for name in HONEST)]
    async with open_ray_pool(address=cluster.ray.address, config=PATIENT) as pool:
        assert (pool.device, pool.jobs, pool.nodes) == ("cpu", 1, (cluster.ray.head_node.node_id,))
        (worker,) = pool._workers.alive
        with pytest.raises(UsageError, match="no living node of the Ray cluster has GPUs: start one with `ray start --num-gpus"):
            async with open_ray_pool(device="cuda"):
                pass

        # The verdicts that the red team's tests ask of a local pool; what kills its sandbox kills no actor.
        for case, result in zip(cases, await judge_all(pool, [(c.problem, c.code) for c in cases]), strict=True):
            assert result.status in case.expected("cpu"), result.detail
        assert (pool.misses, pool.handed_on, pool.notices, pool.told) == (len(cases), 0, (), ())
        assert pool._workers.usable == [worker]

        # Asked twice, judged once.
        again = await judge_all(pool, [(cases[-1].problem, cases[-1].code)] * 2)
        assert [result.cached for result in again] == [True, True]

        # Cancelled here, cancelled there: the only lane of the node is free again.
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pool.evaluate, relu, load("hostile")["sleep"].code)
            while not worker.busy:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        assert (await pool.evaluate(cases[-1].problem, f"{cases[-1].code}# after\n")).status is Status.CORRECT


async def test_no_evaluation_is_lost_or_said_twice_when_actors_and_nodes_die(
    cluster: OwnCluster, relu: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_worker, "Actor", LightActor)
    head, victim = cluster.ray.head_node, cluster.ray.add_node(**NODE)
    async with open_ray_pool(address=cluster.ray.address, cache_dir=tmp_path) as pool:
        actors = {worker.handle for worker in pool._workers.alive}
        assert set(pool.nodes) == {head.node_id, victim.node_id}

        # An actor dies: its place gets another one.
        await dies_in_the_middle(pool, relu, head.node_id, [actor_of(head)], tmp_path)
        with anyio.fail_after(120):
            while len(pool.nodes) < 2:
                await pool._workers._change()
        assert len({worker.handle for worker in pool._workers.usable} - actors) == 1

        # A node dies: its actor is gone.
        cluster.note_processes()
        await dies_in_the_middle(pool, relu, victim.node_id, [raylet_of(victim), actor_of(victim)], tmp_path)
        await anyio.to_thread.run_sync(lambda: cluster.ray.remove_node(victim, allow_graceful=False))
        assert pool.nodes == (head.node_id,)

    # A command, on the node that is left.
    monkeypatch.setenv("RAY_ADDRESS", cluster.ray.address)
    manifest, out = tmp_path / "cases.jsonl", tmp_path / "evaluated.jsonl"
    reference, candidate = RED_TEAM / "reference.py", RED_TEAM / "hostile" / "honest.py"
    manifest.write_text(json.dumps({"id": "a", "reference": str(reference), "candidate": str(candidate)}) + "\n")
    command = ["evaluate", "--manifest", str(manifest), "--out", str(out), "--device", "ray"]
    assert await anyio.to_thread.run_sync(cli.main, command) == 0
    row = json.loads(out.read_text())
    assert (row["id"], row["status"], row["detail"]) == ("a", "correct", f"light: {reference}")


async def dies_in_the_middle(pool: RayPool, problem: Problem, node: str, processes: list[psutil.Process], folder: Path) -> None:
    """Six evaluations, and SIGKILL for `processes` while the actor of `node` judges one of them: six answers, once each."""
    misses, handed_on, lines = pool.misses, pool.handed_on, len(_lines(folder))
    held = folder / f"held by {node}"
    codes = [f"hold {held}", *(f"code {index} of {node}" for index in range(5))]
    (worker,) = (worker for worker in pool._workers.usable if worker.place.node == node)
    done: list[Evaluation] = []

    async def all_of_them() -> None:
        done.extend(await judge_all(pool, [(problem, code) for code in codes]))

    async with anyio.create_task_group() as tasks:
        async with no_seat_but_at(pool, node):
            tasks.start_soon(all_of_them)
            while not held.exists():  # noqa: ASYNC110  (an actor in another process makes it)
                await anyio.sleep(0.01)
        for process in processes:
            process.kill()
    assert Counter(result.status for result in done) == {Status.CORRECT: 6}
    assert done[0].detail == "held before"
    assert worker.lost is not None
    assert (pool.misses, pool.handed_on) == (misses + 6, handed_on + 1)
    keys = [json.loads(line)["key"] for line in _lines(folder)[lines:]]
    assert len(keys) == len(set(keys)) == 6
    with anyio.fail_after(30):
        while not any("was lost, and its evaluations were handed on" in line and node[:8] in line for line in pool.told):
            await pool._workers._change()


@asynccontextmanager
async def no_seat_but_at(pool: RayPool, node: str) -> AsyncIterator[None]:
    """Every seat is taken meanwhile, but that of `node`."""
    async with AsyncExitStack() as taken:
        for _ in pool._workers.usable:
            seat = AsyncExitStack()
            worker = await seat.enter_async_context(pool._workers.seat(alone=False))
            if worker.place.node == node:
                spare = seat
            else:
                await taken.enter_async_context(seat)
        await spare.aclose()
        yield


def raylet_of(node: Any) -> psutil.Process:
    return psutil.Process(node.all_processes["raylet"][0].process.pid)


def actor_of(node: Any) -> psutil.Process:
    (found,) = (process for process in raylet_of(node).children() if process.name().startswith("ray::LightActor"))
    return found


def _lines(folder: Path) -> list[str]:
    """The lines of the results' file in `folder`, which the first verdict creates."""
    path = folder / "results.jsonl"
    return path.read_text().splitlines() if path.exists() else []
