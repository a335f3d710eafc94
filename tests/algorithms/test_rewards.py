"""Golden rewards with their arithmetic, and properties of every registered reward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from algorithms import REWARDS
from algorithms.coverage import coverage_of
from algorithms.layered_reward import LayeredReward
from algorithms.pr import PR
from algorithms.tiered_reward import TieredReward
from algorithms.unchecked_reward import UncheckedReward
from algorithms.weighted_reward import WeightedReward
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.errors import UsageError
from rlkernel.interfaces import Reward
from rlkernel.types import Evaluation, LaunchFact, OpFact, Status

FAILURES = [status for status in Status if status is not Status.CORRECT]
KERNEL = LaunchFact("fused", calls=2, us=60.0, share=0.6, live=True)
DECOY = LaunchFact("decoy", calls=1, us=10.0, share=0.1, live=False)
ADD = OpFact("aten.add", calls=1, us=30.0, share=0.3)


def evaluation(status: Status = Status.CORRECT, speedup: float | None = 1.4, coverage: float | None = 0.5) -> Evaluation:
    return Evaluation(status=status, detail="", speedup=speedup, coverage=coverage, launches=(KERNEL, DECOY), ops=(ADD,))


# Speedups and the rewards of the papers' constants.
GOLDEN: dict[Reward, dict[float, float]] = {
    # 0.5 + 0.5 * min(speedup, 3)
    SpeedReward(): {0.2: 0.6, 1.0: 1.0, 3.0: 2.0, 8.0: 2.0},
    # 0.25 + 2 * min(4, 1.5)
    SpeedReward(correct_weight=0.25, speed_weight=2.0, cap=1.5): {4.0: 3.25},
    # 0.5 + 0.5 [speedup >= 1.01]
    WeightedReward(): {0.5: 0.5, 1.0: 0.5, 1.009: 0.5, 1.01: 1.0, 9.0: 1.0},
    WeightedReward(correct_weight=0.1, speed_weight=0.7, threshold=2.0): {1.9: 0.1, 2.0: 0.8},
    TieredReward(): {0.5: -0.1, 0.99: -0.1, 1.0: 0.2, 1.19: 0.2, 1.2: 0.4, 1.5: 0.6, 2.0: 0.8, 2.9: 0.8, 3.0: 1.0, 9.0: 1.0},
    # coverage 0.5: 0.5 + 0.5 * 1.4 + 0.5 * 0.5, and 0.5 + 0.5 * 3 + 0.5 * 0.5
    PR(): {1.4: 1.45, 8.0: 2.25},
    PR(weight=0.25): {1.4: 1.325},
    # Two of four steps are live launches: 2 of (2 + 1) launches and 1 operator.
    PR(coverage="count"): {1.4: 1.45},
    # 0.5 + 0.5 + 1.0 * 0.5: the public code's weighted reward
    PR(inner=WeightedReward(), weight=1.0): {1.4: 1.5},
    LayeredReward(): {1.4: 1.2},
    UncheckedReward(): {1.4: 1.2, 8.0: 2.0},
    LayeredReward(inner=PR()): {1.4: 1.45},
}


@pytest.mark.parametrize("cls", REWARDS.values())
def test_registered_rewards_implement_the_protocol_and_have_golden_values(cls: type) -> None:
    assert isinstance(cls(), Reward)
    own = Path(__file__).with_name(f"test_{cls.__module__.rpartition('.')[2]}.py")
    assert cls in {type(reward) for reward in GOLDEN} or own.exists(), f"a row in GOLDEN, or {own.name}"


@pytest.mark.parametrize(
    ("reward", "speedup", "expected"), [(r, s, v) for r, values in GOLDEN.items() for s, v in values.items()], ids=str
)
def test_a_correct_candidate(reward: Reward, speedup: float, expected: float) -> None:
    assert reward(evaluation(speedup=speedup)) == pytest.approx(expected, abs=1e-12)


def test_the_largest_reward_of_the_paper_is_2_5() -> None:
    assert PR()(evaluation(speedup=100.0, coverage=1.0)) == 2.5


@pytest.mark.parametrize("reward", [SpeedReward(), WeightedReward(), PR(), LayeredReward(), LayeredReward(inner=PR())], ids=str)
@pytest.mark.parametrize("status", FAILURES)
def test_failures_and_decoys_are_worth_nothing_whatever_their_speed(reward: Reward, status: Status) -> None:
    assert reward(evaluation(status, 5.0, 1.0)) == 0.0


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *((status, -0.5) for status in (Status.INVALID, Status.COMPILE_ERROR, Status.UNTRACEABLE)),
        *((status, -0.3) for status in (Status.INCORRECT, Status.RUNTIME_ERROR, Status.OUT_OF_BOUNDS)),
        *((status, -1.0) for status in (Status.NO_CODE, Status.NO_KERNEL, Status.INCONSISTENT, Status.IMPLAUSIBLE)),
        *((status, -1.0) for status in (Status.TIMEOUT, Status.CRASH)),
    ],
)
def test_failures_of_the_tiered_reward(status: Status, expected: float) -> None:
    assert TieredReward()(evaluation(status, 5.0)) == expected


@pytest.mark.parametrize("reward", [cls() for cls in REWARDS.values()], ids=str)
def test_a_correct_evaluation_without_speedup_is_our_own_failure(reward: Reward) -> None:
    with pytest.raises(ValueError, match="without a speedup"):
        reward(evaluation(speedup=None))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: PR(coverage="num"), "PR.coverage is 'num': use one of time, count"),
        (lambda: TieredReward(tiers=((1.0, 0.2), (3.0, 1.0))), "TieredReward.tiers begin at"),
        (lambda: TieredReward(tiers=((2.0, 0.2), (2.0, 1.0))), "TieredReward.tiers begin at"),
    ],
)
def test_unknown_rules_are_refused(make: Callable[[], Reward], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make()


@pytest.mark.parametrize("kind", ["time", "count"])
def test_a_correct_evaluation_without_coverage_is_our_own_failure(kind: str) -> None:
    unknown = Evaluation(Status.CORRECT, "", speedup=1.0)
    with pytest.raises(ValueError, match=f"without {kind} coverage"):
        PR(coverage=kind)(unknown)  # type: ignore[arg-type]


def test_coverage_kinds() -> None:
    assert coverage_of(evaluation(coverage=0.7), "time") == 0.7
    # Live launches 2; steps 2 + 1 launches + 1 operator.
    assert coverage_of(evaluation(), "count") == 0.5
    with pytest.raises(ValueError, match="coverage is 'num'"):
        coverage_of(evaluation(), "num")  # type: ignore[arg-type]


def ran(*ops: str, status: Status = Status.CORRECT, reference: tuple[str, ...] = ()) -> Evaluation:
    facts = [tuple(OpFact(op, 1, 1.0, 0.1) for op in names) for names in (ops, reference)]
    return Evaluation(status, "", speedup=1.4, coverage=0.5, launches=(KERNEL,), ops=facts[0], reference_ops=facts[1])


@pytest.mark.parametrize(
    ("facts", "layer"),
    [
        (ran(status=Status.NO_CODE), "syntax"),
        (ran(status=Status.INVALID), "syntax"),
        # Torch does all of it: no launch comes before what is left to ATen.
        (ran("aten.mm", status=Status.NO_KERNEL), "syntax"),
        (replace(ran(status=Status.INCORRECT), launches=(DECOY,)), "syntax"),
        (replace(ran("aten.mm", status=Status.INCORRECT), launches=()), "syntax"),
        # A wrong candidate of which nothing is recorded.
        (replace(ran(status=Status.INCORRECT), launches=()), "correctness"),
        (ran("aten.mm"), "functionality"),
        (ran("aten.addmm.default"), "functionality"),
        (ran("aten.view", "aten._softmax"), "functionality"),
        (ran("aten.mm", status=Status.INCORRECT), "functionality"),
        (ran(status=Status.INCONSISTENT), "functionality"),
        # The reference's bottleneck counts, its minor operators do not.
        (ran("aten.gelu", reference=("aten.gelu", "aten.add")), "functionality"),
        (ran("aten.add", reference=("aten.gelu", "aten.add")), None),
        (ran(status=Status.UNTRACEABLE), "compilation"),
        (ran(status=Status.COMPILE_ERROR), "compilation"),
        *((ran(status=status), "correctness") for status in (Status.INCORRECT, Status.RUNTIME_ERROR, Status.OUT_OF_BOUNDS)),
        *((ran(status=status), "correctness") for status in (Status.TIMEOUT, Status.CRASH, Status.IMPLAUSIBLE)),
        (ran("aten.view", "aten.empty"), None),
    ],
)
def test_layers_gate_in_order(facts: Evaluation, layer: str | None) -> None:
    assert LayeredReward().failed(facts) == layer
    assert LayeredReward()(facts) == pytest.approx(1.2 if layer is None else 0.0)


class Dispatched(TorchDispatchMode):
    """A test double of the trace: the names of the operators that were called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


LINE, PLANE, SPACE = torch.ones(2, 4, 8), torch.ones(2, 4, 8, 8), torch.ones(2, 4, 4, 4, 4)
SEQUENCE, MATRIX = torch.ones(3, 2, 4), torch.ones(4, 4)
WORK: list[tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = [
    *((module, (MATRIX,)) for module in (nn.Linear(4, 4), nn.LayerNorm(4), nn.Softmax(-1), nn.LogSoftmax(-1))),
    (nn.Bilinear(4, 4, 5), (MATRIX, MATRIX)),
    *((module, (LINE,)) for module in (nn.Conv1d(4, 4, 3), nn.AvgPool1d(2), nn.MaxPool1d(2))),
    *((module, (LINE,)) for module in (nn.AdaptiveAvgPool1d(2), nn.AdaptiveMaxPool1d(2))),
    *((module, (PLANE,)) for module in (nn.Conv2d(4, 4, 3), nn.ConvTranspose2d(4, 4, 3), nn.AvgPool2d(2), nn.MaxPool2d(2))),
    *((module, (PLANE,)) for module in (nn.AdaptiveAvgPool2d(2), nn.AdaptiveMaxPool2d(2), nn.BatchNorm2d(4), nn.GroupNorm(2, 4))),
    *((module, (PLANE,)) for module in (nn.BatchNorm2d(4).eval(), nn.InstanceNorm2d(4), nn.LocalResponseNorm(2))),
    *((module, (SPACE,)) for module in (nn.Conv3d(4, 4, 3), nn.AvgPool3d(2), nn.MaxPool3d(2))),
    *((module, (SPACE,)) for module in (nn.AdaptiveAvgPool3d(2), nn.AdaptiveMaxPool3d(2))),
    *(
        (module, (SEQUENCE,))
        for module in (nn.LSTM(4, 4), nn.GRU(4, 4), nn.RNN(4, 4), nn.TransformerEncoderLayer(4, 2, 8).eval())
    ),
    (nn.MultiheadAttention(4, 2).eval(), (SEQUENCE,) * 3),
    (nn.functional.scaled_dot_product_attention, (PLANE,) * 3),
    *((product, (MATRIX, MATRIX)) for product in (torch.mm, torch.matmul, torch.cdist)),
    (torch.cdist, (torch.ones(30, 4), torch.ones(30, 4))),
    *((product, (torch.ones(4), torch.ones(4))) for product in (torch.dot, torch.vdot)),
    (torch.addbmm, (torch.ones(2, 4), torch.ones(3, 2, 2), SEQUENCE)),
    (torch.addr, (MATRIX, torch.ones(4), torch.ones(4))),
    (torch.mv, (MATRIX, torch.ones(4))),
    *((scan, (MATRIX,)) for scan in (lambda x: x.cumsum(1), lambda x: x.cumprod(1), lambda x: x.logsumexp(1))),
]


@pytest.mark.parametrize(("work", "inputs"), WORK, ids=[f"{i}-{getattr(w, '__name__', w)}" for i, (w, _) in enumerate(WORK)])
def test_work_that_is_left_to_torch_fails_functionality(work: Callable[..., Any], inputs: tuple[torch.Tensor, ...]) -> None:
    with torch.no_grad(), Dispatched() as dispatched:
        work(*inputs)
    assert LayeredReward().failed(ran(*dispatched.names)) == "functionality", dispatched.names


@pytest.mark.parametrize(
    "name",
    ["mkldnn_rnn_layer", "_cudnn_rnn", "_thnn_fused_lstm_cell", "cudnn_batch_norm", "_native_batch_norm_legit_no_training"],
)
def test_work_that_another_device_or_build_dispatches_fails_functionality(name: str) -> None:
    assert LayeredReward().failed(ran(f"aten.{name}.default")) == "functionality"


def test_a_gate_goes_outside_so_that_it_refuses_the_bonus_too() -> None:
    assert LayeredReward(inner=PR())(ran("aten.mm")) == 0.0
    # 0.5 + 0.5 * 1.4 + 0.5 * 0.5
    assert LayeredReward(inner=PR())(ran()) == pytest.approx(1.45)


def test_the_fields_of_the_layers() -> None:
    left = ran("aten.gelu", reference=("aten.gelu",))
    assert LayeredReward(bottleneck=False).failed(left) is None
    assert LayeredReward(bottleneck=False, heavy=("gelu",)).failed(left) == "functionality"
    assert LayeredReward(heavy=()).failed(ran("aten.mm")) is None


@pytest.mark.parametrize("reward", [cls() for cls in REWARDS.values()], ids=str)
@settings(max_examples=40)
@given(speeds=st.lists(st.floats(0.01, 100), min_size=2, max_size=2), share=st.floats(0, 1))
def test_correct_is_worth_more_than_failing_and_faster_is_never_worth_less(
    reward: Reward, speeds: list[float], share: float
) -> None:
    slow, fast = (reward(evaluation(speedup=s, coverage=share)) for s in sorted(speeds))
    assert slow <= fast
    assert all(reward(evaluation(status, max(speeds), share)) < slow for status in FAILURES)


@settings(max_examples=40)
@given(share=st.floats(0, 1), more=st.floats(0, 1))
def test_more_coverage_is_never_worth_less(share: float, more: float) -> None:
    low, high = sorted((share, more))
    assert PR()(evaluation(coverage=low)) <= PR()(evaluation(coverage=high))


def test_facts_that_are_not_part_of_the_formula_have_no_influence() -> None:
    other = replace(evaluation(), detail="x", max_error=1.0, matches=True, cached=True, host_us=5.0)
    assert all(cls()(other) == cls()(evaluation()) for cls in REWARDS.values())


@pytest.mark.parametrize("status", [Status.NO_KERNEL, Status.INCONSISTENT, Status.IMPLAUSIBLE])
def test_what_an_evaluator_without_the_check_pays(status: Status) -> None:
    hack = replace(evaluation(status, 1.4), matches=True)
    # As if it were correct: 0.5 + 0.5 * 1.4.
    assert UncheckedReward()(hack) == pytest.approx(1.2)
    assert UncheckedReward(launched=True)(replace(hack, launches=(DECOY,))) == pytest.approx(1.2)
    assert UncheckedReward(launched=True)(replace(hack, launches=())) == 0.0
    assert UncheckedReward()(replace(hack, matches=False)) == 0.0
    assert UncheckedReward()(replace(hack, speedup=None)) == 0.0
