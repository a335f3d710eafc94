"""Other people's kernels: what is collected from which layout, and what the page says of verdicts beside native runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.wild import page, read, report
from benchmarks.wild_challenges import challenge_of, meant, solutions_of
from benchmarks.wild_corpus import collect, themselves
from benchmarks.wild_functions import task_of
from rlkernel.evaluator.messages.native import NativeEnd, NativeFound
from rlkernel.evaluator.native.agreement import native_to_json
from rlkernel.types import Closeness, Evaluation, Status

REFERENCE = """import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return x.relu()


def get_inputs():
    return [torch.randn(4)]
"""
KERNEL = "import torch, triton\n@triton.jit\ndef kernel(x_ptr):\n    pass\n"
MODULE = KERNEL + "class ModelNew(torch.nn.Module):\n    pass\n"
FUNCTION = KERNEL + "def kernel_function(x):\n    return x\n"
CHALLENGE = """import ctypes
import torch
from core.challenge_base import ChallengeBase


class Challenge(ChallengeBase):
    name = "Vector Add"

    def reference_impl(self, a, out, n):
        assert a.device.type == "cuda"
        out.copy_(a + 1)

    def get_solve_signature(self):
        return {"a": (ctypes.c_float, "in"), "out": (ctypes.c_float, "out"), "n": (ctypes.c_size_t, "in")}

    def generate_performance_test(self):
        n = 2
        a = torch.empty(n, device=self.device).fill_(3.0)
        return {"a": a, "out": torch.empty(n, device="cuda"), "n": n}
"""
ANSWER = f"```python\n{KERNEL}def solve(a, b, upper):\n    ...\n```"
TASK = """import torch

def solve(a, b, upper=False):
    return torch.triangular_solve(a, b, upper=upper)

{line}

import torch

def test_solve():
    results = {{}}
    # the first
    a = torch.randn(3, 1, device='cuda')
    b = torch.randn(3, 3, device='cuda')
    results["test_case_1"] = solve(a, b, upper=True)
    results["test_case_2"] = solve(b, b)
    return results

test_results = test_solve()
"""


def write(clone: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = clone / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_every_layout_gives_its_pairs(tmp_path: Path) -> None:
    own = REFERENCE.replace("Net", "Model")
    search = {"metadata": {"problem_name": "1_Relu"}, "kernels": [{"code": MODULE + "# a\n"}, {"code": "no kernel"}]}
    clone = tmp_path / "owner+name"
    write(
        clone,
        {
            "KernelBench/level1/1_Relu.py": own,
            "runs/model/level_1_problem_1_sample_0_kernel.py": MODULE + "# b\n",
            "output/zeroshot/model/1_Relu.py": MODULE + "# c\n",
            "output/search/1_Relu/round_1.json": json.dumps(search),
            "benchmarks/hard/problems-h100/01_relu/reference.py": own,
            "public/runs/20260101_model_01_relu_solution.py.txt": KERNEL + "class Model(torch.nn.Module):\n    pass\n",
            "folder/problem.py": REFERENCE,
            "folder/input_kernel.py": FUNCTION,
            "folder/trace/round_3/kernel.py": FUNCTION.replace("(x)", "(x, weight)"),
            "results/level1/1_Relu/code/kernel_2.py": MODULE + "# f\n",
            "tasks/relu/environment/reference.py": own,
            "tasks/relu/solution/oracle.py": MODULE + "# d\n",
            "traces.json": json.dumps([{"sample_key": "k", "pytorch_code": REFERENCE, "triton_code": MODULE + "# e\n"}]),
            "data/TritonBench_T_v1/solve.py": TASK.format(line="#" * 146),
            "LLM_generated/Bench_T/model.jsonl": json.dumps({"predict": ANSWER}),
        },
    )  # fmt: skip
    rows, left_out = collect([clone], tmp_path / "corpus", 10, set())
    assert sorted(row["id"].removeprefix("owner+name/") for row in rows) == [
        "folder/input_kernel", "level1/1_Relu/kernel_2", "model/0-solve", "model/1-1-0",
        "output/search/1_Relu/round_1/0", "output/zeroshot/model/1_Relu",
        "solutions/20260101_model_01_relu", "tasks/relu", "traces/0-k-0",
    ]  # fmt: skip
    assert left_out == {"no Triton kernel": 1, "a function that wants more than the forward's arguments": 1}
    texts = {row["id"].split("/", 1)[1]: (tmp_path / "corpus" / row["reference"]).read_text() for row in rows}
    assert all("class Model(torch.nn.Module)" in text and "def get_init_inputs" in text for text in texts.values())
    candidates = [(tmp_path / "corpus" / row["candidate"]).read_text() for row in rows]
    assert all("ModelNew" in text for text in candidates)


def test_a_folder_gives_an_even_share_and_no_text_twice(tmp_path: Path) -> None:
    clone = tmp_path / "a+b"
    runs = {f"runs/m/level_1_problem_1_sample_{k}_kernel.py": MODULE + f"# {k % 8}\n" for k in range(10)}
    write(clone, {"KernelBench/level1/1_Relu.py": REFERENCE.replace("Net", "Model"), **runs})
    rows, left_out = collect([clone], tmp_path / "corpus", 4, set())
    assert [row["id"] for row in rows] == [f"a+b/m/1-1-{k}" for k in (0, 2, 4, 6)]
    assert left_out == {"the same text again": 2, "more of one folder": 4}


def test_references_are_their_own_candidates(tmp_path: Path) -> None:
    for level in (1, 2, 4):
        (tmp_path / f"KernelBench/level{level}").mkdir(parents=True)
        (tmp_path / f"KernelBench/level{level}/1_Net.py").write_text(REFERENCE)
    rows = list(themselves(tmp_path, tmp_path / "out"))
    assert [row["id"] for row in rows] == ["level1/1_Net", "level2/1_Net"]
    candidate = (tmp_path / "out" / rows[0]["candidate"]).read_text()
    assert candidate == REFERENCE + "\n\nModelNew = Model\n"


def test_a_challenge_is_a_reference_that_returns_what_it_writes(tmp_path: Path) -> None:
    challenge = challenge_of("7_vector_add", CHALLENGE)
    assert challenge is not None and (challenge.args, challenge.outs) == (("a", "out", "n"), ("out",))
    space: dict[str, Any] = {}
    exec(challenge.reference, space)
    inputs = space["get_inputs"]()
    assert inputs[0].tolist() == [3.0, 3.0] and inputs[1].tolist() == [0.0, 0.0] and inputs[2] == 2
    assert space["Model"]().forward(*inputs).tolist() == [4.0, 4.0]
    solution = KERNEL + "def solve(A, output, N):\n    output.copy_(A + 1)\n"
    for place in ("easy-vector_add.py", "7_vector_add/solution.py", "starter/vector_add.py", "softmax.py"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(solution)
    found = [(names, meant(names, text, [challenge])) for names, text in solutions_of(tmp_path)]
    assert [(names, made is challenge) for names, made in found] == [
        (["vectoradd", "solution"], True),
        (["vectoradd"], True),
        (["softmax"], False),
    ]
    assert challenge.candidate(solution).endswith("        solve(a, out, n)\n        return out\n")


def test_the_first_call_of_a_test_is_the_problem() -> None:
    task = task_of(TASK.format(line="#" * 146))
    assert task is not None and (task.function, task.tensors, task.call) == ("solve", "a, b", "solve(a, b, upper=True)")
    assert "    a = torch.randn(3, 1, device='cuda')\n" in task.reference and "results" not in task.reference
    assert task.candidate("def other(a):\n    pass\n") is None
    assert task_of(TASK.format(line="#" * 146).replace("solve(a, b, upper=True)", "solve(a, b[0])")) is None


def test_the_page_from_rows_of_both_sides(tmp_path: Path) -> None:
    def ran(close: Closeness, *, matches: bool) -> NativeFound:
        return NativeFound(
            NativeEnd.RAN, "", constructed=True, matches=matches, close=close, candidate_us=200.0, reference_us=400.0
        )

    correct = Evaluation(Status.CORRECT, "", speedup=2.01, reference_us=402.0, candidate_us=200.0)
    pairs = {
        "a+b/x/1": (ran(Closeness.TIGHT, matches=True), correct),
        "a+b/x/2": (ran(Closeness.LOOSE, matches=False), Evaluation(Status.INCORRECT, "output is wrong")),
        "c+d/y/1": (ran(Closeness.TIGHT, matches=True), Evaluation(Status.NO_KERNEL, "no Triton kernel is launched")),
        "c+d/y/2": (NativeFound(NativeEnd.RAISED, "line 4: NameError"), Evaluation(Status.INVALID, "line 4: NameError")),
    }  # fmt: skip
    native, ours = tmp_path / "native.jsonl", tmp_path / "ours.jsonl"
    native.write_text("".join(json.dumps({"id": name, **native_to_json(one)}) + "\n" for name, (one, _) in pairs.items()))
    ours.write_text("".join(json.dumps({"id": name, **one.to_json()}) + "\n" for name, (_, one) in pairs.items()))
    text = report(read(native, ours))
    assert "1 of 3 natively right candidates accepted (33 %); 0 accepted that are not." in text
    assert "Of the 1 within our bound that launch a kernel, 1 are accepted (100.0 %)." in text
    assert "Candidates of 100 us and more: 1, 1 within 2 %, 1 within 3 %, 1 within 10 %." in text
    assert "- `a/b`: 2\n- `c/d`: 2\n" in page(read(native, ours), "NVIDIA H200", ["command"])
