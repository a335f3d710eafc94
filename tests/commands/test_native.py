"""Whether commands may ask for native runs, and how one is told."""

from __future__ import annotations

import pytest

from rlkernel.commands.native import check_native, told
from rlkernel.errors import UsageError
from rlkernel.evaluator.config import EvaluatorConfig, check_for_training
from rlkernel.evaluator.messages.native import NativeEnd, NativeFound
from rlkernel.evaluator.native.agreement import Judged
from rlkernel.types import Closeness, Evaluation, Status


@pytest.mark.parametrize(
    ("device", "cards", "native", "untraceable", "line"),
    [
        ("cpu", False, True, "refused", "--native: Triton kernels run natively on a GPU only"),
        ("auto", False, False, "native", "--untraceable native: Triton kernels run natively on a GPU only"),
        ("ray", False, True, "refused", "--native: candidates run natively on this machine's GPUs only"),
    ],
)
def test_where_no_kernel_runs_natively_that_is_refused(
    device: str, cards: bool, native: bool, untraceable: str, line: str
) -> None:
    with pytest.raises(UsageError) as refused:
        check_native(device, cards, native=native, untraceable=untraceable)
    assert str(refused.value).startswith(line)


def test_what_may_be_asked_for() -> None:
    check_native("cpu", False, native=False, untraceable="refused")
    check_native("cuda:0", True, native=True, untraceable="native")
    check_native("ray", False, native=False, untraceable="native")


def test_training_refuses_verdicts_that_could_be_forged() -> None:
    check_for_training({"untraceable": EvaluatorConfig().untraceable})
    check_for_training({})
    with pytest.raises(UsageError, match=r'^untraceable="native" is for benchmarks, and not for training'):
        check_for_training({"untraceable": EvaluatorConfig(untraceable="native").untraceable})


def test_a_native_run_in_words() -> None:
    ours = Evaluation(Status.CORRECT, "", speedup=2.0, reference_us=200.0, candidate_us=100.0)
    right = NativeFound(
        NativeEnd.RAN, close=Closeness.LOOSE, reference_us=220.0, candidate_us=100.0, constructed=True
    )  # fmt: skip
    assert told(Judged("a", ours, right)) == "natively right: speedup 2.20x (220.0 us -> 100.0 us), which DIFFERS"
    assert told(Judged("a", ours, NativeFound(NativeEnd.TIMEOUT, "it took too long"))) == "natively timeout: it took too long"
