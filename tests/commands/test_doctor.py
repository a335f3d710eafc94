"""What doctor says of GPUs, from readings made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pynvml
import pytest
from transformers import Qwen3Config

from benchmarks.shapes import SHAPES
from rlkernel.commands import doctor
from rlkernel.commands.cli import main
from rlkernel.evaluator.cards import card_profile
from rlkernel.evaluator.cards.gpus import Gpu, Reading
from tests.evaluator.cards.fake_nvml import FakeNvml, use

ROOT = Path(__file__).parents[2]
GIB = 1 << 30
CARD = Gpu(1, "GPU-aa", "NVIDIA H200", 140 * GIB, "580.1")
IDLE = Reading(0.0, 345, 3201, 30, 75.4, (), 0, 139 * GIB, (), 0)


def test_an_idle_known_card() -> None:
    about, clocks, profile = doctor.card(CARD, IDLE, None)
    assert about == doctor.Finding(
        "cuda:1", "NVIDIA H200, 140 GiB (139 free), driver 580.1, GPU-aa", "idle: no process of others, free to measure", True
    )
    assert clocks.found == "SM 345 MHz, memory 3201 MHz, 30 C, 75 W, not throttled"
    assert (profile.what, profile.found, profile.ok) == (
        "cuda:1 profile", "h200: sm_90, 132 processors, 4300 GB/s, 790 TFLOP/s in bfloat16", True,
    )  # fmt: skip


def test_a_busy_throttled_unknown_card() -> None:
    card = replace(CARD, name="NVIDIA L4")
    about, clocks, profile = doctor.card(card, replace(IDLE, throttle=("power cap",)), "process 42 holds 9 MiB")
    assert about.meaning == "measured times would not be trustworthy: process 42 holds 9 MiB"
    assert about.ok is False
    assert clocks.found.endswith("W, power cap")
    assert profile.found.startswith("cuda:1 (NVIDIA L4): the driver tells too little for a profile: ")
    assert (profile.meaning, profile.ok) == ("no measured times on this card", False)


def test_a_card_without_a_name_here_has_a_profile_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = card_profile.Answers("NVIDIA L4", 89, 58, 24 * GIB, 2040, 6251, 192)
    monkeypatch.setattr(card_profile, "ask", lambda gpu: answers)
    row = doctor.profile(replace(CARD, name="NVIDIA L4"))
    # 6251 MHz * 2 * 24 bytes are 300 GB/s; 58 * 2040 MHz * 1024 operations are 121 TFLOP/s
    assert row.found == "made of the card: sm_89, 58 processors, 300 GB/s, 121 TFLOP/s in bfloat16"
    monkeypatch.setattr(card_profile, "ask", lambda gpu: replace(answers, arch=75))
    assert doctor.profile(CARD).ok is True, "a model with a name needs no answers"
    row = doctor.profile(replace(CARD, name="Tesla T4"))
    assert (row.ok, "compute capability 7.5" in row.found) == (False, True)


def test_a_card_that_tells_nothing() -> None:
    about, clocks, _ = doctor.card(CARD, Reading(0.0, *[None] * 9), None)
    assert about.found == "NVIDIA H200, 140 GiB, driver 580.1, GPU-aa"
    assert about.meaning == "idle, as far as this driver tells: it does not list processes"
    assert clocks.found == "SM unknown, memory unknown, unknown, unknown, throttling unknown"


@pytest.mark.parametrize(
    ("build", "driver", "ok"),
    [
        ("13.0", "13.0", True),
        ("12.6", "13.0", True),
        ("13.2", "13.0", True),
        ("13.0", "12.8", False),
        (None, "13.0", False),
        ("13.0", None, None),
    ],
)
def test_torch_build_against_driver(build: str | None, driver: str | None, ok: bool | None) -> None:
    assert doctor.torch_build(build, driver).ok is ok


def test_without_a_driver_time_is_modelled(monkeypatch: pytest.MonkeyPatch) -> None:
    use(FakeNvml(frozenset({"Init"}), pynvml.NVML_ERROR_LIBRARY_NOT_FOUND), monkeypatch)
    rows = {row.what: row for row in doctor.findings()}
    assert rows["GPU"].found == "none found"
    assert rows["GPU"].meaning.startswith("times are modelled")
    assert rows["GPU"].ok is None
    assert not any(what.startswith("cuda") for what in rows)


def test_a_broken_driver_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    use(FakeNvml(frozenset({"Init"}), pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH), monkeypatch)
    row = next(row for row in doctor.findings() if row.what == "GPU")
    assert row.found.startswith("the NVIDIA driver does not answer: RM has detected")
    assert row.ok is False


def test_with_a_card_torch_and_the_bindings_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = use(FakeNvml(frozenset({"ComputeRunningProcesses"})), monkeypatch)
    fake.utilisation, fake.reasons = 0, 0x1
    rows = {row.what: row for row in doctor.findings()}
    assert rows["cuda:0"].ok is True
    assert rows["cuda:0 profile"].found.startswith("h200: ")
    assert {"cuda:0 clocks", "torch's CUDA", "cuda.bindings"} <= set(rows)


def test_the_table_names_the_sandbox_and_every_package() -> None:
    rows = {row.what: row for row in doctor.findings()}
    assert "rlimits" in rows["sandbox"].found
    assert set(doctor.PACKAGES) <= set(rows)
    assert all(rows[package].found != "missing" for package in ("torch", "triton", "anyio"))


def test_a_model_is_planned_from_its_configuration(tiny_model: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny_model.config.save_pretrained(tmp_path)  # no weights
    assert main(["doctor", "--model", str(tmp_path), "--weights", "bfloat16", "--gib", "80"]) == 0
    told = capsys.readouterr().out
    assert "two of 1 byte each" in told and "80.00" in told
    assert max(map(len, told.splitlines()[1:-1])) <= 100
    assert main(["doctor", "--model", str(tmp_path), "--gib", "0.001"]) == 2
    told = capsys.readouterr().out
    assert "%" not in told.partition("missing")[2], "no percentage of what is not there"
    assert "0 at a time: the model has no more" in " ".join(told.split())
    assert told.splitlines()[-1].startswith(f"{tmp_path} does not fit: it needs ")


@pytest.mark.parametrize(
    ("shape", "words", "helps"),
    [
        ("8b", "--card-gib 80 --weights bfloat16", ["--evaluation-gib 18", "--weights float32 --pieces 5 --gib 78"]),
        (
            "8b",
            "--card-gib 80",
            ["--weights bfloat16 --evaluation-gib 18", "--lora-rank 32 --evaluation-gib 33", "--pieces 5 --gib 78"],
        ),
        ("8b", "--gib 76 --pieces 2", ["--lora-rank 32", "--pieces 6"]),
        ("8b", "--gib 45 --lora-rank 8 --max-new-tokens 8000", ["--max-new-tokens 5632", "--pieces 2"]),
        ("8b", "--device cpu", []),
    ],
)
def test_only_what_fits_is_offered(
    shape: str, words: str, helps: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Qwen3Config(**SHAPES[shape]).save_pretrained(tmp_path)
    start = ["doctor", "--model", str(tmp_path)]
    assert main([*start, *words.split()]) == 2
    line = capsys.readouterr().out.splitlines()[-1]
    assert [way.split(" (")[0] for way in line.split("it fits with ")[-1].split(", or with ")] == (helps or [line])
    for way in helps:
        # Later flags win; a card of its own takes the place of a shared one.
        given = [*words.split(), *way.split()] if "--gib" not in way else way.split()
        assert main([*start, *given]) == 0, way
        if step := {"--evaluation-gib": 1, "--max-new-tokens": 64}.get(given[-2]):
            assert main([*start, *given[:-1], str(int(given[-1]) + step)]) == 2, "it is the most"


def test_a_card_that_is_not_here_has_the_rows_of_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Qwen3Config(**SHAPES["8b"]).save_pretrained(tmp_path)
    words = ["doctor", "--model", str(tmp_path), "--weights", "bfloat16", "--max-new-tokens", "1024", "--card-gib", "139.8"]
    page = (ROOT / "docs" / "larger.md").read_text(encoding="utf-8")
    for more, room, conversations in (([], "0 (half)", 14), (["--evaluation-gib", "24"], "24", 87)):
        assert main([*words, *more]) == 0
        assert (
            capsys.readouterr().out.splitlines()[-1]
            == f"{tmp_path} fits: {conversations} conversations of 4,096 tokens at a time"
        )
        assert f"| 8B | bfloat16 | {room} | 57.0 GiB | {conversations} |" in page


def test_the_shipped_policy_has_numbers_other_than_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--model", "small", "--gib", "80"]) == 0
    told = capsys.readouterr().out
    assert "0.98 million parameters" in told and " 0.00 " not in told
    assert "conversation of 2,048" in told and "the model has no more" in told and "4,096" not in told


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--gib", "80"], "--gib plans the memory of a model: name one with --model"),
        (
            ["--model", "small", "--gib", "135.8", "--evaluation-gib", "24"],
            "--gib is what the policy alone has: for a card that evaluations share, give --card-gib instead of it",
        ),
        (
            ["--model", "small", "--evaluation-gib", "24", "--device", "cpu"],
            "--evaluation-gib: evaluations share no card with the policy here: name one with --card-gib",
        ),
        (
            ["--model", "small", "--card-gib", "80", "--device", "cpu"],
            "--device is of this machine, and --gib and --card-gib are of another: leave one of them out",
        ),
        (
            ["--model", "small", "--card-gib", "80", "--pieces", "2"],
            "--pieces: each of these processes has a card without evaluations: give --gib alone",
        ),
        (["--model", "small", "--device", "gpu"], "--device: device 'gpu' is unknown: use auto, cpu, cuda, cuda:N or ray"),
        (["--model", "small", "--pieces", "0"], "--pieces is 0: it must be a whole number of at least 1"),
        (["--model", "small", "--turns", "0"], "--turns is 0: it must be a whole number of at least 1"),
        (["--model", "small", "--max-new-tokens", "0"], "--max-new-tokens is 0: it must be a whole number of at least 1"),
        (["--model", "small", "--staleness", "-3"], "--staleness is -3: it must be a whole number that is not negative"),
        (["--model", "small", "--lora-rank", "-1"], "--lora-rank is -1: it must be a whole number that is not negative"),
        (
            ["--model", "small", "--evaluation-gib", "-1"],
            "--evaluation-gib is -1: it must be a whole number that is not negative",
        ),
        (["--model", "small", "--gib", "nan"], "--gib is nan: it must be a number that is not negative"),
        (["--model", "small", "--card-gib", "-4"], "--card-gib is -4.0: it must be a number that is not negative"),
        (
            ["--model", "small", "--gib", "76", "--weights", "bfloat16", "--pieces", "2"],
            "--pieces is 2 and --weights is 'bfloat16': its moments of eight bits are not sharded, so leave it at 'float32'",
        ),
        (
            ["--model", "small", "--weights", "bfloat16", "--lora-rank", "8"],
            "--weights is 'bfloat16' and --lora-rank 8: adapters are float32 over weights that are frozen in bfloat16, so leave "
            "weights at 'float32'",
        ),
        (
            ["--model", "small", "--weights", "bfloat16", "--rule", "sgd"],
            "--weights is 'bfloat16' and --rule 'sgd': such weights have an AdamW of their own, so leave weights at 'float32'",
        ),
        (["--model", "small", "--card-gib", "6"], "--card-gib 6: too little for a policy and evaluations"),
    ],
)
def test_no_flag_is_ignored_or_one_that_no_run_has(words: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", *words]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"error: {line}"
