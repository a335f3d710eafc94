"""The evaluator on a Ray cluster: the local pool's verdicts, and nothing lost or said twice when actors and nodes die."""

from __future__ import annotations

import json
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.to_thread
import psutil
import pytest

from rlkernel import cli
from rlkernel.errors import UsageError
from rlkernel.evaluator import ray_workers
from rlkernel.evaluator.cache import ResultCache
from rlkernel.evaluator.ray_actor import Answer, Hello
from rlkernel.evaluator.ray_pool import RayPool, open_ray_pool
from rlkernel.evaluator.ray_workers import Place, Refused, Worker, WorkerLost, Workers, find_places
from rlkernel.evaluator.stages import EvaluatorConfig, EvaluatorFailed, Limits
from rlkernel.placement import RAY, place, select
from rlkernel.reference import BrokenReference
from rlkernel.types import Evaluation, Problem, Seconds, Status
from tests.red_team.cases import FOLDER as RED_TEAM
from tests.red_team.cases import load

SMALL = EvaluatorConfig(limits=Limits(trace_seconds=300))
"""A candidate that sleeps would hold its lane for as long as this test may take."""
HOSTILE = ("kill_parent", "kill_all", "exit_forward", "zeros", "syntax")
HONEST = ("center_rows",)


@contextmanager
def ray_cluster(nodes: int) -> Iterator[Any]:
    """A cluster on this machine, one CPU per node, in a directory of its own; afterwards none of its processes is left."""
    pytest.importorskip("ray", reason="Ray is not installed: install rlkernel[ray]")
    from ray.cluster_utils import Cluster

    me = psutil.Process()
    before = set(me.children(recursive=True))
    with tempfile.TemporaryDirectory(prefix="ray-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("OMP_NUM_THREADS", "1")
        cluster = Cluster(initialize_head=True, head_node_args=NODE)
        started: set[psutil.Process] = set()
        cluster.processes = lambda: started.update(set(me.children(recursive=True)) - before)
        try:
            for _ in range(nodes - 1):
                cluster.add_node(**NODE)
            yield cluster
            cluster.processes()
        finally:
            cluster.shutdown()
        assert _left(started) == []


def _left(started: set[psutil.Process]) -> list[psutil.Process]:
    """Those that still run after a while; a zombie has ended, whoever should have noticed it."""
    deadline = time.monotonic() + 30
    while True:
        left = [process for process in started if _running(process)]
        if not left or time.monotonic() > deadline:
            return left
        psutil.wait_procs(left, timeout=0.1)


def _running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}


async def judge_all(pool: Any, jobs: list[tuple[Problem, str]]) -> list[Evaluation]:
    """In order; every evaluation is counted when it answers."""
    found: dict[int, Evaluation] = {}

    async def one(index: int) -> None:
        result = await pool.evaluate(*jobs[index])
        assert index not in found
        found[index] = replace(result, seconds=Seconds())

    async with anyio.create_task_group() as tasks:
        for index in range(len(jobs)):
            tasks.start_soon(one, index)
    return [found[index] for index in range(len(jobs))]


@pytest.mark.anyio
@pytest.mark.timeout(600)  # a third of that where the cores are taken
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_cluster_gives_the_local_verdicts_and_loses_none_when_actors_and_nodes_die(
    relu: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One test, because the cluster is its price: two nodes of one CPU each."""
    cases = [*(load("hostile")[name] for name in HOSTILE), *(load("honest")[name] for name in HONEST)]
    with ray_cluster(2) as cluster:
        async with open_ray_pool(address=cluster.address, cache_dir=tmp_path, config=SMALL) as pool:
            (victim,) = cluster.worker_nodes
            assert (pool.device, pool.jobs, len(pool.nodes)) == ("cpu", 2, 2)
            assert victim.node_id in pool.nodes
            actors = {worker.handle for worker in pool._workers.alive}
            with pytest.raises(
                UsageError, match="no living node of the Ray cluster has GPUs: start one with `ray start --num-gpus"
            ):
                async with open_ray_pool(device="cuda"):
                    pass

            # The verdicts that the red team's tests ask of a local pool; what kills its sandbox kills no actor.
            for case, result in zip(cases, await judge_all(pool, [(c.problem, c.code) for c in cases]), strict=True):
                assert result.status in case.expected("cpu"), result.detail
            assert (pool.misses, pool.handed_on, pool.notices) == (len(cases), 0, ())
            assert {worker.handle for worker in pool._workers.usable} == actors

            # Asked twice, judged once.
            again = await judge_all(pool, [(cases[-1].problem, cases[-1].code)] * 2)
            assert [result.cached for result in again] == [True, True]

            # Cancelled here, cancelled there: the only lane of each node is free again.
            sleeper = (relu, load("hostile")["sleep"].code)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(judge_all, pool, [sleeper, (relu, sleeper[1] + "# another\n")])
                while not all(worker.busy for worker in pool._workers.usable):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            after = await judge_all(pool, [(cases[-1].problem, f"{cases[-1].code}# {index}\n") for index in range(2)])
            assert [result.status for result in after] == [Status.CORRECT] * 2

            # An actor dies: its place gets another one.
            await dies_in_the_middle(pool, relu, cluster.head_node.node_id, [actor_of(cluster.head_node)])
            with anyio.fail_after(120):
                while len(pool.nodes) < 2:
                    await pool._workers._change()
            assert len({worker.handle for worker in pool._workers.usable} - actors) == 1

            # A node dies: its actor is gone.
            cluster.processes()
            await dies_in_the_middle(pool, relu, victim.node_id, [raylet_of(victim), actor_of(victim)])
            await anyio.to_thread.run_sync(lambda: cluster.remove_node(victim, allow_graceful=False))
            assert len(pool.nodes) == 1
            assert victim.node_id not in pool.nodes

        # A command, on the node that is left.
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        manifest, out = tmp_path / "cases.jsonl", tmp_path / "evaluated.jsonl"
        reference, candidate = RED_TEAM / "reference.py", RED_TEAM / "hostile" / "kill_parent.py"
        manifest.write_text(json.dumps({"id": "a", "reference": str(reference), "candidate": str(candidate)}) + "\n")
        command = ["evaluate", "--manifest", str(manifest), "--out", str(out), "--device", "ray"]
        assert await anyio.to_thread.run_sync(cli.main, command) == 0
        assert json.loads(out.read_text())["status"] == "runtime_error"


async def dies_in_the_middle(pool: RayPool, problem: Problem, node: str, processes: list[psutil.Process]) -> None:
    """Six evaluations, and SIGKILL for `processes` while the actor of `node` judges one of them: six answers, once each."""
    honest = load("hostile")["honest"].code
    misses, handed_on, lines = pool.misses, pool.handed_on, len(_lines(pool))
    done: list[Evaluation] = []

    async def all_of_them() -> None:
        done.extend(await judge_all(pool, [(problem, f"{honest}# {node} {index}\n") for index in range(6)]))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(all_of_them)
        while not all(worker.busy for worker in pool._workers.usable):
            await anyio.lowlevel.checkpoint()
        for process in processes:  # at once, before this thread can hear of an answer
            process.kill()
        (worker,) = (worker for worker in pool._workers.usable if worker.place.node == node)
    assert Counter(result.status for result in done) == {Status.CORRECT: 6}
    assert worker.lost is not None
    assert (pool.misses, pool.handed_on) == (misses + 6, handed_on + 1)
    keys = [json.loads(line)["key"] for line in _lines(pool)[lines:]]
    assert len(keys) == len(set(keys)) == 6
    with anyio.fail_after(30):
        while not any("was lost, and its evaluations were handed on" in line and node[:8] in line for line in pool.notices):
            await pool._workers._change()


def raylet_of(node: Any) -> psutil.Process:
    return psutil.Process(node.all_processes["raylet"][0].process.pid)


def actor_of(node: Any) -> psutil.Process:
    (found,) = (process for process in raylet_of(node).children() if process.name().startswith("ray::Actor"))
    return found


def _lines(pool: RayPool) -> list[str]:
    assert pool.cache._path is not None
    return pool.cache._path.read_text().splitlines()


# Without a cluster


class Scripted(Worker):
    """An actor that answers when it may, and dies of some candidates."""

    def __init__(self, name: str, jobs: int, deadly: tuple[str, ...] = ()) -> None:
        hello = Hello("cpu", (), jobs, SMALL, ())
        super().__init__(None, Place(name, name, 0, jobs, False), None, None, hello)
        self.deadly = deadly
        self.judged: list[tuple[str, int]] = []
        """Candidate and how many others were there."""

    async def judge(self, problem: Problem, code: str) -> Answer:
        self.judged.append((code, self.busy - 1))
        await anyio.lowlevel.checkpoint()
        if self.lost is not None:
            raise WorkerLost(self.lost)
        if code in self.deadly:
            self.lose(f"{code} killed it")
            raise WorkerLost(f"{code} killed it")
        if code == "broken":
            return Answer(broken="mine/broken: no Model")
        return Answer(Evaluation(Status.CORRECT, code))


def scripted_pool(workers: list[Scripted]) -> RayPool:
    crew = Workers(None, 0, SMALL, None, gpu=False)
    crew.alive.extend(workers)
    return RayPool(crew, workers[0].hello, ResultCache(None))


@pytest.mark.anyio
async def test_a_candidate_that_loses_three_actors_raises_and_is_alone_on_the_third(relu: Problem) -> None:
    workers = [Scripted(name, jobs=4, deadly=("poison",)) for name in ("a", "b", "c", "d")]
    pool = scripted_pool(workers)
    failed: list[str] = []
    answers: Counter[str] = Counter()

    async def one(code: str) -> None:
        try:
            answers[(await pool.evaluate(relu, code)).detail] += 1
        except EvaluatorFailed as error:
            failed.append(str(error))

    async with anyio.create_task_group() as tasks:
        for code in ("poison", *(f"good {index}" for index in range(15))):
            tasks.start_soon(one, code)
    (line,) = failed
    assert line.startswith("relu: 3 evaluators were lost while they judged one candidate, the last time it was alone there: ")
    assert line.count("poison killed it") == 3
    assert answers == Counter({f"good {index}": 1 for index in range(15)})
    others = [others for worker in workers for code, others in worker.judged if code == "poison"]
    assert len(others) == 3
    assert min(others) == 0
    assert [worker.place.node for worker in workers if worker.lost is None] == list(pool.nodes)
    assert len(pool.nodes) == 1


@pytest.mark.anyio
async def test_without_a_node_an_evaluation_raises(relu: Problem) -> None:
    pool = scripted_pool([Scripted("a", jobs=1)])
    pool._workers.alive.clear()
    pool._workers.notices.append("a has left the cluster")
    with pytest.raises(EvaluatorFailed, match="no node of the Ray cluster is left to evaluate: a has left the cluster"):
        await pool.evaluate(relu, "code")


@pytest.mark.anyio
async def test_a_broken_reference_is_no_loss(relu: Problem) -> None:
    pool = scripted_pool([Scripted("a", jobs=1)])
    with pytest.raises(BrokenReference, match="mine/broken: no Model"):
        await pool.evaluate(relu, "broken")
    assert (pool.handed_on, pool.misses, len(pool.nodes)) == (0, 0, 1)


@pytest.mark.anyio
async def test_seats_are_given_back_by_what_is_cancelled(relu: Problem) -> None:
    worker = Scripted("a", jobs=1)
    pool = scripted_pool([worker])
    async with pool._workers.seat(alone=False):
        for alone in (False, True):
            with anyio.move_on_after(0.01):
                async with pool._workers.seat(alone=alone):
                    raise AssertionError("there is one seat")
    assert (worker.busy, worker.reserved) == (0, False)
    assert (await pool.evaluate(relu, "after")).correct


class Remote:
    """A method of an actor of Ray: `answer`, or nothing ever."""

    def __init__(self, answer: object = None) -> None:
        self.answer = answer

    async def remote(self, *_: object) -> object:
        if self.answer is None:
            await anyio.sleep_forever()
        return self.answer


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("version", "hello", "line"),
    [
        (None, None, r"10.0.0.1 \(node abcdefgh, GPU actor 0\): an actor found no room \(it wants 8 CPUs and a GPU, all that"),
        ("here", None, "an actor did not open its pool within 0 s"),
        ("there", None, r"has another version of rlkernel, torch, triton or numpy \(there there, here here\): install the same"),
        (
            "here",
            Hello("H200", ("GPU-1",), 8, SMALL, ()),
            "evaluates on the GPU that this process uses itself: start Ray there with",
        ),
        ("here", Hello("A100", ("GPU-2",), 8, SMALL, ()), "has A100, another place H200: times on both do not compare"),
    ],
)
async def test_what_cannot_be_used_is_refused_in_one_line(
    version: str | None, hello: Hello | None, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_workers, "evaluator_version", lambda: "here")
    if line.endswith(("all that", "0 s")):
        monkeypatch.setattr(ray_workers, "START_SECONDS", 0.01)
    ray = SimpleNamespace(exceptions=SimpleNamespace(RayError=KeyError))
    crew = Workers(ray, 0, SMALL, "GPU-1", gpu=True)
    crew._first = Hello("H200", ("GPU-0",), 8, SMALL, ())
    handle = SimpleNamespace(version=Remote(version), hello=Remote(hello), serve=SimpleNamespace(remote=lambda *_: None))
    with pytest.raises(Refused, match=line):
        await crew._greet(Place("abcdefghij", "10.0.0.1", 0, 8, True), handle)


def test_places() -> None:
    def node(name: str, alive: bool = True, **resources: float) -> dict[str, Any]:
        return {"NodeID": name, "NodeManagerAddress": "10.0.0.1", "Alive": alive, "Resources": resources}

    nodes = [node("head"), node("small", CPU=2.0), node("large", CPU=64.0, GPU=4.0), node("gone", alive=False, CPU=8.0)]
    assert [(p.node, p.cpus, p.lanes) for p in find_places(nodes, gpu=False)] == [("small", 2, 2), ("large", 64, 64)]
    # 16 CPUs per GPU: 1.25 lanes each and one more, as `open_pool` has it
    found = find_places(nodes, gpu=True)
    assert [(p.node, p.index, p.cpus, p.lanes) for p in found] == [("large", index, 16, 21) for index in range(4)]


def test_the_policy_and_a_cluster() -> None:
    assert select(RAY) == ()
    assert str(place(RAY)) == "the policy is on the CPU, evaluations on the nodes of a Ray cluster"


@pytest.mark.anyio
async def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"needs Ray, which is not installed: install rlkernel\[ray\]"):
        async with open_ray_pool():
            pass


@pytest.mark.anyio
async def test_bad_arguments_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="device 'cuda:0' is unknown on a Ray cluster: use auto, cpu or cuda"):
        async with open_ray_pool(device="cuda:0"):
            pass
    with pytest.raises(UsageError, match="jobs is -1: use 0"):
        async with open_ray_pool(jobs=-1):
            pass
    pytest.importorskip("ray", reason="Ray is not installed: install rlkernel[ray]")
    monkeypatch.setenv("RAY_ADDRESS", "ray://10.0.0.1:10001")
    with pytest.raises(UsageError, match="a Ray client cannot be used: run on a node of the cluster"):
        async with open_ray_pool():
            pass
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{port}")
    with pytest.raises(UsageError, match=rf"no Ray cluster answers at [\d.]+:{port}: ConnectionRefusedError.*`ray start --head`"):
        async with open_ray_pool():
            pass
