"""The evaluator on the driver, over scripted actors: what a loss means for a problem, and how it connects to a cluster."""

from __future__ import annotations

import socket
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest

from rlkernel.benchmark.trajectories import UNSCORED, Ledger, evaluate_codes
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.errors import BrokenReference, EvaluatorFailed, UsageError, usage_error
from rlkernel.evaluator.ray import pool as ray_pool
from rlkernel.evaluator.ray import workers as ray_workers
from rlkernel.evaluator.ray.pool import RayPool, open_ray_pool
from rlkernel.types import Problem
from tests.evaluator.ray.scripted import Crew, Nodes, crew_pool, scripted_pool


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
    pool, crew = scripted_pool(jobs=4, deadly=("poison",))

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
async def test_a_broken_reference_is_no_loss(relu: Problem) -> None:
    pool, _ = scripted_pool(jobs=1)
    with pytest.raises(BrokenReference, match="mine/broken: no Model"):
        await pool.evaluate(relu, "broken")
    assert (pool.handed_on, pool.misses, len(pool.nodes)) == (0, 0, 1)


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
