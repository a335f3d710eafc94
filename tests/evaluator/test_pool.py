"""The pool itself: facts of an honest candidate, caching, cancellation, and nothing left behind."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest

from rlkernel.errors import BrokenReference, EvaluatorFailed
from rlkernel.evaluator.pool import Pool, open_pool
from rlkernel.evaluator.processes.fork_server import ZygoteDied
from rlkernel.evaluator.program import encoding
from rlkernel.types import Problem, Status
from tests.patient import PATIENT

HOSTILE = Path(__file__).parents[1] / "red_team" / "hostile"


@pytest.mark.anyio
async def test_facts_of_an_honest_relu(pool: Pool, relu: Problem) -> None:
    result = await pool.evaluate(relu, (HOSTILE / "honest.py").read_text() + "# facts\n")
    # 4096 * 4096 * 4 bytes read and written at 4.3e6 bytes/us, plus 2.5 us: 33.7 us; both sides move the same bytes. But of the
    # kernel's 65,536 programs 16 fit on each of 132 processors, so that there are 32 waves of 1.1 us, a load and a start each.
    assert result.reference_us == pytest.approx(2.5 + 2 * 4096 * 4096 * 4 / 4.3e6)
    assert result.speedup == pytest.approx(0.913, rel=1e-3)
    assert result.timing == "modelled"
    assert result.coverage == 1.0
    assert [(fact.kernel, fact.calls, fact.live) for fact in result.launches] == [("kernel", 1, True)]
    assert result.launches[0].registers > 0
    assert result.ops == ()
    assert [fact.op for fact in result.reference_ops] == ["aten.relu"]
    assert result.max_error == 0.0


@pytest.mark.anyio
async def test_whole_programs_are_read_and_written_beside_the_event_loop(
    pool: Pool, relu: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Program of 16,384 steps takes half a second: for the seed's key, and for each child that is told of it."""
    threads: dict[str, list[int]] = {"step_to_json": [], "_step": []}

    def noting(name: str) -> Any:
        real = getattr(encoding, name)

        def noted(*given: Any) -> Any:
            threads[name].append(threading.get_ident())
            return real(*given)

        return noted

    for name in threads:
        monkeypatch.setattr(encoding, name, noting(name))
    monkeypatch.setattr(pool._stages, "config", replace(pool.config, seed=1))
    result = await pool.evaluate(relu, (HOSTILE / "honest.py").read_text() + "# beside\n")
    assert result.correct
    # Both sizes are read once; written are both for the key, one for the compiler, and both for the runner: three steps each.
    assert (len(threads["_step"]), len(threads["step_to_json"])) == (6, 15)
    assert threading.get_ident() not in {*threads["_step"], *threads["step_to_json"]}


@pytest.mark.anyio
async def test_lazy_candidate_has_the_coverage_of_its_kernel(pool: Pool, relu: Problem) -> None:
    code = (
        (HOSTILE / "honest.py")
        .read_text()
        .replace("return relu(x)", "return -torch.sigmoid(relu(x)).log().neg().exp().logit().neg()")
    )
    result = await pool.evaluate(relu, code)
    assert result.coverage is not None
    assert len(result.ops) >= 5
    kernel = 36.92  # microseconds, where each operator takes 33.71
    assert result.coverage == pytest.approx(kernel / (kernel + 33.71 * sum(fact.calls for fact in result.ops)), rel=1e-3)


@pytest.mark.anyio
async def test_a_result_is_computed_once_for_concurrent_and_later_calls(pool: Pool, relu: Problem) -> None:
    code = (HOSTILE / "honest.py").read_text() + "# once\n"
    before, cached = pool.misses, []

    async def one() -> None:
        cached.append((await pool.evaluate(relu, code)).cached)

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(one)
    await one()
    assert pool.misses == before + 1
    assert sorted(cached) == [False, True, True, True, True]


@pytest.mark.anyio
async def test_no_code(pool: Pool, relu: Problem) -> None:
    assert (await pool.evaluate(relu, None)).status is Status.NO_CODE


@pytest.mark.anyio
@pytest.mark.parametrize("code", ["", "   \n\t", "x = 1\n"])
async def test_a_file_without_the_class_is_invalid_if_it_is_empty_too(pool: Pool, relu: Problem, code: str) -> None:
    found = await pool.evaluate(relu, code)
    assert (found.status, found.detail) == (Status.INVALID, "no class ModelNew(nn.Module): define one")


@pytest.mark.anyio
async def test_a_broken_reference_raises_one_line_that_names_it(pool: Pool) -> None:
    problem = Problem("mine/broken", 1, "train", "import torch\nclass Model(torch.nn.Module): pass\n")
    with pytest.raises(BrokenReference, match=r"mine/broken: it defines no get_inputs; a reference has"):
        await pool.evaluate(problem, "x = 1")


@pytest.mark.anyio
async def test_cancelled_evaluations_free_their_lanes(pool: Pool, relu: Problem) -> None:
    sleeper = (HOSTILE / "sleep.py").read_text()
    with anyio.move_on_after(0.3):
        async with anyio.create_task_group() as tasks:
            for index in range(4):
                tasks.start_soon(pool.evaluate, relu, sleeper + f"# cancelled {index}\n")
    result = await pool.evaluate(relu, (HOSTILE / "honest.py").read_text() + "# after cancellation\n")
    assert result.status is Status.CORRECT


@pytest.mark.anyio
async def test_closing_leaves_no_process_file_or_socket(tmp_path: Path, relu: Problem) -> None:
    me = psutil.Process()
    descriptors, children = me.num_fds(), {child.pid for child in me.children(recursive=True)}
    async with open_pool(device="cpu", jobs=1, cache_dir=tmp_path, config=PATIENT) as mine:
        scratch = mine.server.scratch
        assert (await mine.evaluate(relu, (HOSTILE / "honest.py").read_text())).correct
        assert len(me.children(recursive=True)) >= len(children) + 2  # the zygote and its oracle
    assert {child.pid for child in me.children(recursive=True)} == children
    assert me.num_fds() == descriptors
    assert not scratch.exists()
    async with open_pool(device="cpu", jobs=1, cache_dir=tmp_path, config=PATIENT) as mine:  # results outlive the pool
        assert (await mine.evaluate(relu, (HOSTILE / "honest.py").read_text())).cached


@pytest.mark.anyio
async def test_death_of_the_fork_server_is_our_failure(relu: Problem) -> None:
    async with open_pool(device="cpu", jobs=1, config=PATIENT) as mine:
        os.kill(mine.server.pid, 9)
        with pytest.raises((ZygoteDied, EvaluatorFailed), match=r"fork server ended|runs the reference was killed"):
            await mine.evaluate(relu, "import torch\n")


@pytest.mark.anyio
async def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(ValueError, match="device 'tpu' is unknown: use auto, cpu, cuda, cuda:N or ray"):
        async with open_pool(device="tpu"):
            pass


@pytest.mark.anyio
async def test_without_a_shared_card_a_lease_comes_at_once(pool: Pool) -> None:
    assert (pool.shares, pool.waited_seconds) == (False, None)
    async with pool.lease(), pool.lease():
        pass
