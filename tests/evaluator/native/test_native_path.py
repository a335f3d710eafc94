"""Candidates as plain Python: the verdicts of attacks on what runs them, what is left of them, and which time counts."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import psutil
import pytest

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.config import EvaluatorConfig, Limits
from rlkernel.evaluator.messages.native import NativeEnd, NativeFound, Way
from rlkernel.evaluator.native_path import NativePath, native_evaluation, open_native
from rlkernel.evaluator.pool import Pool, open_pool
from rlkernel.evaluator.processes import sandbox
from rlkernel.types import Closeness, Problem, Seconds, Status
from tests.red_team import cases

pytestmark = pytest.mark.anyio
FENCED = sandbox.level().seccomp and sandbox.level().landlock
_LINE = re.compile(r"# relu (?P<status>[a-z_]+)(?P<gpu> gpu)?(?P<slow> slow)?: \S.*")


@dataclass(frozen=True, slots=True)
class Attack:
    """A file of tests/red_team/native, with the verdict that its first line names."""

    code: str
    status: Status
    gpu: bool
    """Whether it needs a GPU."""
    slow: bool
    """Whether it does 400 times the work, so that a speedup near 1 or above is forged."""


def attack(path: Path) -> Attack:
    code = path.read_text()
    line = _LINE.fullmatch(code.splitlines()[0])
    assert line is not None, path
    return Attack(code, Status(line["status"]), line["gpu"] is not None, line["slow"] is not None)


ATTACKS = {path.stem: attack(path) for path in sorted((cases.FOLDER / "native").glob("*.py"))}


@pytest.fixture(scope="module")
async def native(anyio_backend: str) -> AsyncIterator[NativePath]:
    config = EvaluatorConfig(limits=Limits(native_seconds=20))
    async with open_native("", config) as path:
        yield path


def processes_of(path: NativePath) -> set[int]:
    """The processes that the path's fork server has started, by the scratch folder that is in their environment."""
    found = set()
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR") == str(path.server.scratch) and process.status() != psutil.STATUS_ZOMBIE:
                found.add(process.pid)
        except psutil.Error:
            continue
    return found


@pytest.mark.skipif(not FENCED, reason="this kernel has not both seccomp and Landlock")
@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items() if not attack.gpu])
async def test_attacks(native: NativePath, name: str) -> None:
    relu, one = cases.relu(), ATTACKS[name]
    found = await native.run(relu, one.code, Way.JUDGED)
    verdict = native_evaluation(found, 0.0, Seconds(), measured=True)
    assert (verdict.status, verdict.trust) == (one.status, "native"), found
    assert processes_of(native) == {native.server.pid}
    assert list(native.server.scratch.glob("native-*")) == []


@pytest.fixture(scope="module")
async def native_gpu_pool(anyio_backend: str) -> AsyncIterator[Pool]:
    config = EvaluatorConfig(untraceable="native", limits=Limits(native_seconds=30))
    async with open_pool(device="cuda:0", jobs=2, config=config) as opened:
        yield opened


@pytest.mark.gpu
@pytest.mark.parametrize("name", ATTACKS)
async def test_attacks_on_a_gpu(native_gpu_pool: Pool, name: str) -> None:
    one = ATTACKS[name]
    found = await native_gpu_pool.run_natively(cases.relu(), one.code, Way.JUDGED)
    verdict = native_evaluation(found, 0.0, Seconds(), measured=True)
    assert verdict.status is one.status, found
    if verdict.correct:  # the reference's own work: nothing makes it faster
        assert verdict.speedup is not None
        assert verdict.speedup < (0.1 if one.slow else 1.5), found


@pytest.mark.gpu
async def test_what_cannot_be_traced_is_timed_on_a_gpu(native_gpu_pool: Pool) -> None:
    verdict = await native_gpu_pool.evaluate(cases.relu(), ATTACKS["triton_value_read"].code)
    assert (verdict.status, verdict.trust, verdict.timing, verdict.coverage) == (Status.CORRECT, "native", "measured", None)
    assert verdict.speedup is not None
    assert 0.0 < verdict.speedup < 1.2  # its host waits, on busy hosts a hundred times as long as the work takes


@pytest.mark.gpu
async def test_a_native_run_agrees_with_an_evaluation(native_gpu_pool: Pool) -> None:
    case = cases.load("honest")["level2/chain_bias_gelu_scale"]
    verdict = await native_gpu_pool.evaluate(case.problem, case.code)
    found = await native_gpu_pool.run_natively(case.problem, case.code, Way.KERNELBENCH)
    assert (verdict.correct, verdict.trust, found.right) == (True, "traced", True), found
    assert verdict.speedup == pytest.approx(found.speedup, rel=0.1), found


LONG = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        for _ in range(12):
            x = torch.tanh(x @ x)
        return x


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return []
"""
FORGED = """
from rlkernel.evaluator.native import calls
before = calls.CallClock.time
calls.CallClock.time = lambda self, call: (before(self, call)[0], 0.001)
"""


async def test_a_forged_clock_gains_little(native: NativePath) -> None:
    """The candidate is the reference and claims a nanosecond a call, which its referee's clock does not believe."""
    code = FORGED + LONG.replace("class Model", "class ModelNew")
    found = await native.run(Problem("long", 1, "train", LONG), code, Way.KERNELBENCH)
    assert (found.ended, found.right, found.claimed_us) == (NativeEnd.RAN, True, 0.001)
    assert found.candidate_us == found.proved_us > 0.2 * found.reference_us


async def test_what_is_counted_of_an_honest_candidate(native: NativePath) -> None:
    found = await native.run(cases.relu(), ATTACKS["value_read"].code, Way.KERNELBENCH)
    assert (found.right, found.close, found.matches, found.error, found.inputs_changed) == (
        True,
        Closeness.TIGHT,
        True,
        0.0,
        False,
    )
    assert (found.calls, found.constructed) == (20, True)
    assert found.candidate_us == max(found.claimed_us, found.proved_us)
    assert found.speedup == found.reference_us / found.candidate_us


async def test_a_reference_that_raises_is_broken(native: NativePath) -> None:
    source = LONG.replace("x = torch.tanh(x @ x)", "raise KeyError('no')")
    with pytest.raises(BrokenReference, match=r"^bad: as plain Python on cpu: line 9: KeyError: 'no'$"):
        await native.run(Problem("bad", 1, "train", source), ATTACKS["value_read"].code, Way.JUDGED)


WEIGHTED = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.line = nn.Linear(size, size)

    def forward(self, x):
        return self.line(self.norm(x))


def get_inputs():
    return [torch.randn(8, 32)]


def get_init_inputs():
    return [32]
"""


@pytest.mark.parametrize(
    ("change", "judged", "kernelbench"),
    [
        (("", ""), True, True),
        (("self.norm(x)", "torch.nn.functional.layer_norm(x, (32,))"), False, True),  # its scale is 1 and its shift 0 as drawn
        (
            ("self.norm = nn.LayerNorm(size)\n        self.line = nn.Linear(size, size)",
             "self.line = nn.Linear(size, size)\n        self.spare = nn.Linear(1, 1)\n        self.norm = nn.LayerNorm(size)"),
            True, True,
        ),
        (
            ("self.line = nn.Linear(size, size)", "self.first = nn.Linear(size, 1)\n        self.line = nn.Linear(size, size)"),
            True, False,
        ),
    ],
    ids=["equal", "ignores the constants", "another order", "draws more before"],
)  # fmt: skip
async def test_both_ways(native: NativePath, change: tuple[str, str], judged: bool, kernelbench: bool) -> None:
    """KernelBench's way sees no constant that is ignored, and asks for weights in the order in which they are drawn."""
    problem = Problem("weighted", 1, "train", WEIGHTED)
    code = WEIGHTED.replace("class Model", "class ModelNew").replace(*change)
    found: dict[Way, NativeFound] = {way: await native.run(problem, code, way) for way in Way}
    assert found[Way.JUDGED].matches is judged, found
    assert found[Way.KERNELBENCH].right is kernelbench, found


async def test_a_run_that_nobody_waits_for_leaves_nothing(native: NativePath) -> None:
    with anyio.move_on_after(3):
        await native.run(cases.relu(), ATTACKS["never_ends"].code, Way.JUDGED)
    with anyio.fail_after(30):
        while processes_of(native) != {native.server.pid}:  # noqa: ASYNC110  (nobody is told of the end of a child's child)
            await anyio.sleep(0.05)


async def test_what_cannot_be_traced_is_judged_natively_if_that_was_asked_for(anyio_backend: str, tmp_path: Path) -> None:
    code = ATTACKS["value_read"].code
    async with open_pool(device="cpu", jobs=1) as pool:
        assert (await pool.evaluate(cases.relu(), code)).status is Status.UNTRACEABLE
    async with open_pool(device="cpu", jobs=1, config=EvaluatorConfig(untraceable="native"), cache_dir=tmp_path) as pool:
        verdict = await pool.evaluate(cases.relu(), code)
        wrong = await pool.evaluate(cases.relu(), code.replace("torch.clamp(x, min=0)", "x"))
        assert (await pool.evaluate(cases.relu(), code)).cached
    assert (verdict.status, verdict.trust, verdict.matches, verdict.speedup) == (Status.CORRECT, "native", True, None)
    assert (wrong.status, wrong.trust) == (Status.INCORRECT, "native")
    assert '"trust": "native"' in (tmp_path / "results.jsonl").read_text()


def test_there_are_attacks() -> None:
    assert len(ATTACKS) >= 20
    assert os.path.isabs(str(cases.FOLDER))


@pytest.mark.skipif(not FENCED, reason="this kernel has not both seccomp and Landlock")
@pytest.mark.parametrize("way", Way)
async def test_a_run_without_times_compares_all_the_same(native: NativePath, way: Way) -> None:
    right, wrong = ("relu", "neg")
    code = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return torch.{}(x)\n"
    for name, matches in ((right, True), (wrong, False)):
        found = await native.run(cases.relu(), code.format(name), way, timed=False)
        assert (found.ended, found.matches, found.right, found.calls, found.speedup) == (NativeEnd.RAN, matches, matches, 0, None)
