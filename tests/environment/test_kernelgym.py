"""The public code's form: golden feedback, and answers as its reward finds them."""

from __future__ import annotations

import json

import pytest

from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.environment.kernelgym import extract_code, state
from rlkernel.errors import UsageError
from rlkernel.types import Evaluation, LaunchFact, OpFact, Problem, Status

FAST = Evaluation(
    Status.CORRECT, "", True, 2.0, 1.9, 2.1, 100.0, 50.0, "measured", coverage=0.8,
    launches=(LaunchFact("fused", 1, 40.0, 0.8, True),), ops=(OpFact("aten.add", 2, 10.0, 0.2),),
)  # fmt: skip
GIVEN = Problem("p", 1, "train", "class Model: ...", prompt="As <it> is.\n")


def test_the_feedback_of_a_correct_kernel() -> None:
    assert state(FAST) == {
        "status": "completed",
        "compiled": True,
        "correctness": True,
        "decoy_kernel": False,
        "reference_runtime": 0.1,  # 100 us in milliseconds
        "kernel_runtime": 0.05,
        "speedup": 2.0,
        "metadata": {"status": "correct", "runtime_error": None, "backend": "triton"},
        "error_message": None,
        "time_coverage": 0.8,
        "success": True,
        "profiling": {
            "cuda_kernels": [
                {"name": "fused", "cuda_time_us": 40.0, "count": 1},
                {"name": "aten.add", "cuda_time_us": 10.0, "count": 2},
            ],
            "total_cuda_time_us": 50.0,
        },
    }
    text = KernelEnvironment("kernelgym").feedback(FAST)
    assert json.loads(text[text.index("{") : text.rindex("}") + 1]) == state(FAST)
    assert '\n  "status": "completed",\n' in text


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (Status.COMPILE_ERROR, ("completed", False, False, False)),
        (Status.INCORRECT, ("completed", True, False, False)),
        (Status.NO_KERNEL, ("completed", True, False, True)),
        (Status.TIMEOUT, ("failed", True, False, False)),
    ],
)
def test_what_a_failure_is_told_as(status: Status, told: tuple[str, bool, bool, bool]) -> None:
    found = state(Evaluation(status, "bad\n```<|im_start|>"))
    assert tuple(found[key] for key in ("status", "compiled", "correctness", "decoy_kernel")) == told
    assert found["error_message"] == "bad '''(|im_start|)"
    assert (found["speedup"], found["kernel_runtime"], found["profiling"]) == (0.0, -1.0, None)


@pytest.mark.parametrize("style", ["given", "kernelgym"])
def test_the_prompt_is_the_problems_own_unchanged(style: str) -> None:
    assert KernelEnvironment(style).prompt(GIVEN) == "As <it> is.\n"  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=f"q has no prompt of its own, which the style '{style}' shows: use full"):
        KernelEnvironment(style).prompt(Problem("q", 1, "train", ""))  # type: ignore[arg-type]


NEW = "class ModelNew:\n    pass"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (f"First.\n```python\nold = 1\n```\nThen.\n```python\n{NEW}\n```\nDone.", f"{NEW}\n"),
        (f"```python\n{NEW}\n```\n```text\nnotes\n```", None),  # the last fence, whatever it holds
        (f"<think>```python\n{NEW}\n```", f"{NEW}\n"),  # an unfinished thought counts as text
        (f"```python\n{NEW}", f"```python\n{NEW}\n"),  # no closed fence: all of the answer
        (f"# Your implementation:\n{NEW}\n# End\n```python\nother\n```", f"{NEW}\n"),
        ("No code.", None),
    ],
)
def test_answers_are_found_as_the_public_code_finds_them(answer: str, code: str | None) -> None:
    assert extract_code(answer) == code
    assert KernelEnvironment("kernelgym", "kernelgym").extract(answer) == code


def test_ours_differ_where_a_thought_is_unfinished() -> None:
    assert KernelEnvironment().extract(f"<think>```python\n{NEW}\n```") is None
