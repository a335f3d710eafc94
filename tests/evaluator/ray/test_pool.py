"""The evaluator on a Ray cluster: the local pool's verdicts, and nothing lost or said twice when actors and nodes die."""

from __future__ import annotations

import json
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.to_thread
import psutil
import pytest

from algorithms.speed_reward import SpeedReward
from rlkernel.benchmark.attempts import UNSCORED, Ledger, evaluate_codes
from rlkernel.commands import cli
from rlkernel.errors import BrokenReference, EvaluatorFailed, UsageError, usage_error
from rlkernel.evaluator.cache import ResultCache
from rlkernel.evaluator.config import EvaluatorConfig, Limits
from rlkernel.evaluator.ray import pool as ray_pool
from rlkernel.evaluator.ray import workers as ray_workers
from rlkernel.evaluator.ray.actor import Actor, Answer, Hello
from rlkernel.evaluator.ray.places import Place, find_places
from rlkernel.evaluator.ray.pool import RayPool, open_ray_pool
from rlkernel.evaluator.ray.workers import Refused, Worker, WorkerLost, Workers
from rlkernel.training.placement import RAY, place, select
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
    pytest.importorskip("ray", reason="cluster tests (pip install ray)")
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
            assert (pool.misses, pool.handed_on, pool.notices, pool.told) == (len(cases), 0, (), ())
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
        while not any("was lost, and its evaluations were handed on" in line and node[:8] in line for line in pool.told):
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


class Nodes:
    """A cluster in words: the module `ray` as far as it is asked about nodes."""

    exceptions = SimpleNamespace(RayError=KeyError)

    def __init__(self, **cpus: int) -> None:
        self.cpus = cpus

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"NodeID": name, "NodeManagerAddress": name, "Alive": True, "Resources": {"CPU": float(count)}}
            for name, count in self.cpus.items()
        ]


class Scripted(Worker):
    """An actor that answers when it may, and dies of some candidates, alone or (`fatal`) with its node."""

    def __init__(
        self, place: Place, judged: list[tuple[str, int]], nodes: Nodes, deadly: Sequence[str] = (), fatal: Sequence[str] = ()
    ) -> None:
        super().__init__(None, place, None, None, Hello("cpu", (), place.cpus, SMALL, ()))
        self.deadly = deadly
        self.fatal = fatal
        self.nodes = nodes
        self.judged = judged
        """By all actors, in order: candidate and how many others were there."""

    async def judge(self, problem: Problem, code: str) -> Answer:
        self.judged.append((code, self.busy - 1))
        await anyio.lowlevel.checkpoint()
        if code in self.fatal:
            self.nodes.cpus.pop(self.place.node, None)
        if code in (*self.deadly, *self.fatal):
            self.lose(f"{code} killed it")
        if self.lost is not None:
            raise WorkerLost(self.lost)
        if code == "broken":
            return Answer(broken="mine/broken: no Model")
        self.answered += 1
        return Answer(Evaluation(Status.CORRECT, code, speedup=1.0, timing="modelled"))


class Crew(Workers):
    """Whose actors are scripted."""

    def __init__(self, nodes: Nodes, deadly: Sequence[str] = (), fatal: Sequence[str] = ()) -> None:
        super().__init__(nodes, 0, SMALL, None, gpu=False)
        self.script = (nodes, deadly, fatal)
        self.judged: list[tuple[str, int]] = []
        self.started: list[str] = []
        self._first = Hello("cpu", (), 1, SMALL, ())

    @asynccontextmanager
    async def _running(self, place: Place) -> AsyncIterator[Worker]:
        if place.node not in self.script[0].cpus:
            raise Refused(f"{place}: an actor could not start")
        self.started.append(place.node)
        yield Scripted(place, self.judged, *self.script)


@asynccontextmanager
async def crew_pool(crew: Crew) -> AsyncIterator[RayPool]:
    async with ray_pool._running(crew, None) as pool:
        yield pool


def scripted_pool(jobs: int, deadly: Sequence[str] = ()) -> RayPool:
    """Of one actor, for which nobody cares."""
    crew = Crew(Nodes(a=jobs), deadly)
    crew.alive.append(Scripted(find_places(crew.script[0].nodes(), gpu=False)[0], crew.judged, *crew.script))
    return RayPool(crew, crew.alive[0].hello, ResultCache(None))


@pytest.mark.anyio
async def test_what_kills_its_actor_alone_raises_and_is_named(relu: Problem) -> None:
    """After two losses among others it waits for an actor of its own, so that nobody else has to begin again for the third."""
    crew = Crew(Nodes(a=4, b=4, c=4, d=4), deadly=("poison",))
    failed: list[str] = []
    answers: Counter[str] = Counter()

    async def one(pool: RayPool, code: str) -> None:
        try:
            answers[(await pool.evaluate(relu, code)).detail] += 1
        except EvaluatorFailed as error:
            failed.append(str(error))

    good = [f"good {index}" for index in range(60)]
    async with crew_pool(crew) as pool, anyio.create_task_group() as tasks:
        for code in (*good[:9], "poison", *good[9:]):
            tasks.start_soon(one, pool, code)
    (line,) = failed
    assert line.startswith(
        "relu: 3 evaluators were lost while they judged one candidate, the last time it was alone there and the node lived on: "
    )
    assert line.count("poison killed it") == 3
    assert answers == Counter(dict.fromkeys(good, 1))
    others = [others for code, others in crew.judged if code == "poison"]
    assert len(others) == 3
    assert others[0] > 0
    assert others[-1] == 0
    assert len(crew.started) > 4


@pytest.mark.anyio
async def test_after_its_losses_in_company_an_evaluation_waits_until_it_is_alone(
    relu: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_pool, "LOSSES_IN_COMPANY", 0)
    monkeypatch.setattr(ray_workers, "NODE_SECONDS", 0.0)
    pool = scripted_pool(jobs=4, deadly=("poison",))
    crew = pool._workers
    assert isinstance(crew, Crew)

    async def condemned() -> None:
        with pytest.raises(EvaluatorFailed, match=r"^relu: 1 evaluators were lost .* poison killed it$"):
            await pool.evaluate(relu, "poison")

    async with anyio.create_task_group() as tasks:
        async with crew.seat(alone=False):
            tasks.start_soon(condemned)
            await anyio.wait_all_tasks_blocked()
            assert crew.judged == []
    assert crew.judged == [("poison", 0)]


@pytest.mark.anyio
async def test_what_loses_nodes_is_nobodys_fault(relu: Problem, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Five nodes go while they judge the same candidate, the last three alone: the command ends, and the next one tries again."""
    crew = Crew(Nodes(a=1, b=1, c=1, d=1, e=1, f=1), fatal=("unlucky",))
    ledger = Ledger(tmp_path)
    with pytest.raises(BaseExceptionGroup) as raised:
        async with crew_pool(crew) as pool:
            await evaluate_codes([relu], {"relu": ["unlucky"]}, pool, ledger, SpeedReward())
    assert str(usage_error(raised.value)).startswith(
        "relu: 5 evaluators were lost while they judged one candidate, the last time with the node: a (node a): unlucky killed it"
    )
    assert len(crew.judged) == 5
    assert not (tmp_path / UNSCORED).exists()
    first = "the evaluator on a (node a) was lost, and its evaluations were handed on: unlucky killed it"
    assert pool.told[0] == first
    assert "a (node a) has left the cluster" in pool.told
    assert capsys.readouterr().err.splitlines() == list(pool.told)


@pytest.mark.anyio
async def test_the_end_of_the_cluster_is_held_against_no_problem(relu: Problem, tmp_path: Path) -> None:
    crew, ledger = Crew(Nodes(a=2), fatal=("last",)), Ledger(tmp_path)
    problems = [replace(relu, name=name) for name in ("one", "two", "three")]
    codes = {"one": ["fine"], "two": ["last"], "three": ["waits"]}
    with pytest.raises(BaseExceptionGroup) as raised:
        async with crew_pool(crew) as pool:
            await evaluate_codes(problems, codes, pool, ledger, SpeedReward())
    assert str(usage_error(raised.value)) == (
        "no node of the Ray cluster is left to evaluate: a (node a) has left the cluster: "
        "the same command goes on when there is one"
    )
    assert ledger.unscored == {}
    assert not (tmp_path / UNSCORED).exists()
    healthy = Crew(Nodes(b=2))
    async with crew_pool(healthy) as pool:
        await evaluate_codes(problems, codes, pool, Ledger(tmp_path), SpeedReward())
    assert {"last", "waits"} <= {code for code, _ in healthy.judged}
    assert set(Ledger(tmp_path).tried(dict.fromkeys(codes, 1), 1)) == set(codes)


@pytest.mark.anyio
async def test_that_a_problem_took_the_last_actor_is_known_before_no_node_is_left(
    relu: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place is given up with the third loss, so that no successor shows that the node lives."""
    monkeypatch.setattr(ray_workers, "NODE_SECONDS", 0.05)
    monkeypatch.setattr(ray_workers, "LOOK_SECONDS", 0.01)
    crew, ledger = Crew(Nodes(a=1), deadly=("poison",)), Ledger(tmp_path)
    heard: list[dict[str, str]] = []

    async def wait_in_vain(pool: RayPool) -> None:
        with anyio.fail_after(10):
            while len(crew.judged) < 3:
                await crew._changed.wait()
        with pytest.raises(UsageError, match="no node of the Ray cluster is left"):
            await pool.evaluate(relu, "good")
        heard.append(dict(ledger.unscored))

    async with crew_pool(crew) as pool, anyio.create_task_group() as tasks:
        tasks.start_soon(wait_in_vain, pool)
        with pytest.raises(BaseExceptionGroup) as raised:
            await evaluate_codes([relu], {"relu": ["poison"]}, pool, ledger, SpeedReward())
    assert raised.value.subgroup(EvaluatorFailed) is not None
    assert [list(unscored) for unscored in heard] == [["relu"]]


@pytest.mark.anyio
async def test_nodes_that_join_are_used(relu: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_workers, "WATCH_SECONDS", 0.01)
    crew = Crew(Nodes(a=1))
    async with crew_pool(crew) as pool:
        assert pool.nodes == ("a",)
        crew.script[0].cpus["b"] = 2
        with anyio.fail_after(10):
            while len(pool.nodes) < 2:
                await crew._changed.wait()
        assert (pool.nodes, pool.jobs) == (("a", "b"), 3)
        assert (await pool.evaluate(relu, "code")).correct
    assert crew.started == ["a", "b"]


@pytest.mark.anyio
async def test_a_place_is_given_up_after_three_losses_without_an_answer(relu: Problem) -> None:
    crew = Crew(Nodes(a=1))
    async with crew_pool(crew) as pool:
        for number in range(7):
            if number in (1, 2, 3):  # an answer between losses: they are not in a row
                await pool.evaluate(relu, f"code {number}")
            worker = crew.usable[0]
            worker.lose(f"loss {number}")
            with anyio.fail_after(10):
                while worker in crew.alive or crew._starting:
                    await crew._changed.wait()
        assert crew.told[-1] == "a (node a) is given up after 3 losses without an answer: loss 6"
        assert pool.nodes == ()
        with pytest.raises(UsageError, match=r"no node of the Ray cluster is left to evaluate: .* is given up after 3 losses"):
            await pool.evaluate(relu, "code")
    assert len(crew.started) == 7


@pytest.mark.anyio
async def test_an_actor_that_is_wanted_whole_takes_nobody_else(relu: Problem) -> None:
    crew = scripted_pool(jobs=2)._workers
    order: list[str] = []
    leave = {name: anyio.Event() for name in ("first", "alone", "after")}

    async def sit(name: str, alone: bool) -> None:
        async with crew.seat(alone=alone) as worker:
            order.append(f"{name} of {worker.busy}")
            await leave[name].wait()

    async with anyio.create_task_group() as tasks:
        for name in leave:
            tasks.start_soon(sit, name, name == "alone")
            await anyio.wait_all_tasks_blocked()
        for name in ("first", "alone", "after"):
            leave[name].set()
            await anyio.wait_all_tasks_blocked()
    assert order == ["first of 1", "alone of 1", "after of 1"]


@pytest.mark.anyio
async def test_what_breaks_in_the_background_does_not_hide_what_the_body_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_workers, "WATCH_SECONDS", 0.01)
    nodes = Nodes(a=1)

    def unreachable() -> list[dict[str, Any]]:
        raise KeyError("the head is gone")

    with pytest.raises(UsageError, match=r"^the Ray cluster does not tell its nodes: KeyError: 'the head is gone': the same"):
        async with crew_pool(Crew(nodes)):
            monkeypatch.setattr(nodes, "nodes", unreachable)
            await anyio.sleep_forever()

    class Stubborn(Crew):
        @asynccontextmanager
        async def _running(self, place: Place) -> AsyncIterator[Worker]:
            try:
                async with super()._running(place) as worker:
                    yield worker
            finally:
                raise OSError("cannot close")

    with pytest.raises(RuntimeError, match=r"^the body's$"):
        async with crew_pool(Stubborn(Nodes(a=1))):
            raise RuntimeError("the body's")
    with pytest.raises(OSError, match=r"^cannot close$"):
        async with crew_pool(Stubborn(Nodes(a=1))):
            pass


@pytest.mark.anyio
async def test_a_broken_reference_is_no_loss(relu: Problem) -> None:
    pool = scripted_pool(jobs=1)
    with pytest.raises(BrokenReference, match="mine/broken: no Model"):
        await pool.evaluate(relu, "broken")
    assert (pool.handed_on, pool.misses, len(pool.nodes)) == (0, 0, 1)


@pytest.mark.anyio
async def test_seats_are_given_back_by_what_is_cancelled(relu: Problem) -> None:
    pool = scripted_pool(jobs=1)
    (worker,) = pool._workers.alive
    async with pool._workers.seat(alone=False):
        for alone in (False, True):
            with anyio.move_on_after(0.01):
                async with pool._workers.seat(alone=alone):
                    raise AssertionError("there is one seat")
    assert (worker.busy, worker.reserved) == (0, False)
    assert (await pool.evaluate(relu, "after")).correct


class Remote:
    """A method of an actor of Ray: `answer`, or nothing ever; `log` has its calls."""

    def __init__(self, answer: object = None, name: str = "", log: list[str] | None = None) -> None:
        self.answer, self.name, self.log = answer, name, [] if log is None else log

    async def remote(self, *_: object) -> object:
        self.log.append(self.name)
        if self.answer is None:
            await anyio.sleep_forever()
        return self.answer


class Served:
    """The answer of `serve`, which comes when the actor was stopped, or to all who wait."""

    def __init__(self) -> None:
        self.over = anyio.Event()

    def __await__(self) -> Generator[Any, Any, None]:
        return self.over.wait().__await__()


class OneActor(Nodes):
    """The module `ray`, whose actors are `handle`."""

    def __init__(self, version: str | None, hello: Hello | None, answer: Answer | None = None) -> None:
        super().__init__(a=8)
        self.log: list[str] = []
        served = Served()

        async def stop() -> None:
            self.log.append("stop")
            served.over.set()

        self.handle = SimpleNamespace(
            version=Remote(version), hello=Remote(hello, "hello", self.log), serve=SimpleNamespace(remote=lambda *_: served),
            stop=SimpleNamespace(remote=stop), judge=Remote(answer, "judge", self.log), drop=Remote(),
        )  # fmt: skip

    def remote(self, _: type[Actor]) -> Any:
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda: self.handle))

    def kill(self, _: object) -> None:
        self.log.append("kill")


ON_A_GPU = Place("abcdefghij", "10.0.0.1", 0, 8, True)
READY = Hello("H200", ("GPU-2",), 8, SMALL, ())


@pytest.fixture
def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `_running` imports of it."""
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "ray.util", SimpleNamespace())
    strategies = SimpleNamespace(NodeAffinitySchedulingStrategy=lambda *_, **__: None)
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", strategies)
    monkeypatch.setattr(ray_workers, "source_version", lambda: "here")


def crew_of(ray: OneActor) -> Workers:
    crew = Workers(ray, 0, SMALL, "GPU-1", gpu=True)
    crew._first = Hello("H200", ("GPU-0",), 8, SMALL, ())
    return crew


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("version", "hello", "line", "log"),
    [
        (
            None,
            None,
            r"10.0.0.1 \(node abcdefgh, GPU actor 0\): an actor found no room \(it wants 8 CPUs and a GPU, all that",
            ["kill"],
        ),
        ("here", None, "an actor did not open its pool within 0 s", ["hello", "stop", "kill"]),
        (
            "there",
            None,
            r"has another version of rlkernel, torch, triton or numpy \(there there, here here\): install the same",
            ["kill"],
        ),
        (
            "here",
            replace(READY, cards=("GPU-1",)),
            "evaluates on the GPU that this process uses itself: start Ray there with",
            ["hello", "stop", "kill"],
        ),
        (
            "here",
            replace(READY, device="A100"),
            "has A100, another place H200: times on both do not compare",
            ["hello", "stop", "kill"],
        ),
    ],
)
async def test_what_cannot_be_used_is_refused_in_one_line_and_its_pool_is_closed(
    version: str | None, hello: Hello | None, line: str, log: list[str], monkeypatch: pytest.MonkeyPatch, without_ray: None
) -> None:
    if hello is None and version != "there":
        monkeypatch.setattr(ray_workers, "START_SECONDS", 0.01)
    ray = OneActor(version, hello)
    with pytest.raises(Refused, match=line):
        async with crew_of(ray)._running(ON_A_GPU):
            raise AssertionError("refused")
    assert ray.log == log


@pytest.mark.anyio
async def test_a_pool_is_closed_before_its_actor_is_killed(relu: Problem, without_ray: None) -> None:
    ray = OneActor("here", READY, Answer(failed="OSError: disk full"))
    async with crew_of(ray)._running(ON_A_GPU) as worker:
        pass
    assert ray.log == ["hello", "stop", "kill"]

    # One that cannot go on still answers.
    ray = OneActor("here", READY, Answer(failed="OSError: disk full"))
    async with crew_of(ray)._running(ON_A_GPU) as worker:
        with pytest.raises(WorkerLost, match=r"^OSError: disk full$"):
            await worker.judge(relu, "code")
        assert worker.lost == "OSError: disk full"
        assert worker.over.is_set()
        assert worker.answered == 0
    assert ray.log == ["hello", "judge", "stop", "kill"]

    # Cancelled while it opens.
    ray = OneActor("here", None)

    async def open_it() -> None:
        async with crew_of(ray)._running(ON_A_GPU):
            raise AssertionError("it never opens")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_it)
        with anyio.fail_after(10):
            while ray.log != ["hello"]:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert ray.log == ["hello", "stop", "kill"]


class Slow:
    """An actor's pool that never answers a candidate but "quick"."""

    notices = ()

    async def judge(self, problem: Problem, code: str) -> Evaluation:
        if code != "quick":
            await anyio.sleep_forever()
        return Evaluation(Status.CORRECT, code)


@pytest.mark.anyio
async def test_an_actor_forgets_what_it_was_told_to_drop(relu: Problem) -> None:
    actor = Actor()
    actor._pool = Slow()  # type: ignore[assignment]
    answers: dict[int, Answer] = {}

    async def judge(ticket: int, code: str) -> None:
        answers[ticket] = await actor.judge(ticket, relu, code)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(judge, 1, "slow")
        tasks.start_soon(judge, 4, "quick")
        await anyio.wait_all_tasks_blocked()
        for ticket in (1, 2, 4, 5):  # runs; was passed by 4; has ended; is to come
            await actor.drop(ticket)
        for ticket in (5, 3, 2):
            tasks.start_soon(judge, ticket, "quick" if ticket == 3 else "slow")
    verdict = Answer(Evaluation(Status.CORRECT, "quick"))
    assert answers == {1: Answer(), 2: Answer(), 3: verdict, 4: verdict, 5: Answer()}
    assert (actor._scopes, actor._dropped, actor._late, actor._newest) == ({}, set(), set(), 5)


def test_notices_are_kept_once_and_in_order() -> None:
    crew = scripted_pool(jobs=1)._workers
    (worker,) = crew.alive
    for said in (("one",), ("one", "two"), ("two",)):
        worker.notices = said
        crew.hear(worker)
    assert crew.notices == ["a (node a): one", "a (node a): two"]


def test_an_address_is_not_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(gcs_address="10.0.0.1:6379")
    ray = SimpleNamespace(is_initialized=lambda: True, get_runtime_context=lambda: context)
    monkeypatch.setitem(sys.modules, "ray", ray)
    # a version of Ray without the private function that resolves addresses
    monkeypatch.setitem(sys.modules, "ray._private.services", None)
    for same in (None, "auto", "10.0.0.1:6379"):
        assert ray_pool._connect(same) == (ray, False)
    with pytest.raises(
        UsageError, match=r"^address 10.0.0.2:6379: this process is connected to the Ray cluster at 10.0.0.1:6379"
    ):
        ray_pool._connect("10.0.0.2:6379")


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
    pytest.importorskip("ray", reason="cluster tests (pip install ray)")
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
