"""Profiles that are made of a card: the arithmetic for five cards' answers, what is measured, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pynvml
import pytest

from rlkernel.errors import EvaluatorFailed
from rlkernel.evaluator.cards import card_profile, gpus
from rlkernel.evaluator.cards.card_profile import Answers, RateStore, ask, derive, measured_profile, refusal
from rlkernel.evaluator.cards.gpus import Gpu
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.devices import H200, L40S, PROFILES, profile_of
from rlkernel.evaluator.messages.endings import Failed
from rlkernel.evaluator.messages.gpu import MeasureRates, Rates
from rlkernel.types import Status
from tests.evaluator.cards.fake_nvml import FakeNvml
from tests.evaluator.cards.played import PlayedRunner

GIB = 1 << 30
# name, capability, CUDA cores, memory, clocks of processors and of memory, bus; as `nvidia-smi -q` and data sheets have them
CARDS = {
    "NVIDIA H100 PCIe": ((9, 0), 14592, 80 * GIB, 1755, 1593, 5120),
    "NVIDIA L40": ((8, 9), 18176, 45 * GIB, 2490, 9001, 384),
    "NVIDIA RTX A6000": ((8, 6), 10752, 48 * GIB, 2100, 8001, 384),
    "NVIDIA A100-PCIE-40GB": ((8, 0), 6912, 40 * GIB, 1410, 1215, 5120),
    "NVIDIA GeForce RTX 5090": ((12, 0), 21760, 32 * GIB, 3090, 14001, 512),
}
# processors, GB/s, TFLOP/s in bfloat16: cores / 128 (64 on an A100), clock * 2 * width / 8, processors * clock * operations
WANTED = {
    "NVIDIA H100 PCIe": (114, 2039.0, 819.5),
    "NVIDIA L40": (142, 864.1, 362.1),
    "NVIDIA RTX A6000": (84, 768.1, 90.3),
    "NVIDIA A100-PCIE-40GB": (108, 1555.2, 311.9),
    "NVIDIA GeForce RTX 5090": (170, 1792.1, 537.9),
}
RATES = Rates(1.4e6, 3.1, 48 << 20, 101_376, 142)
pytestmark = pytest.mark.anyio


class Driver(FakeNvml):
    """An NVML with one of `CARDS`."""

    def __init__(self, name: str, absent: frozenset[str] = frozenset()) -> None:
        super().__init__(absent)
        self.card = CARDS[name]

    def nvmlDeviceGetCudaComputeCapability(self, handle: str) -> tuple[int, int]:
        return self.card[0]

    def nvmlDeviceGetNumGpuCores(self, handle: str) -> int:
        return int(self._value("NumGpuCores", self.card[1]))

    def nvmlDeviceGetMaxClockInfo(self, handle: str, kind: int) -> int:
        return {pynvml.NVML_CLOCK_SM: self.card[3], pynvml.NVML_CLOCK_MEM: self.card[4]}[kind]

    def nvmlDeviceGetMemoryBusWidth(self, handle: str) -> int:
        return self.card[5]


def gpu(name: str) -> Gpu:
    return Gpu(0, "GPU-0", name, CARDS[name][2] if name in CARDS else 16 * GIB, "580.1")


@pytest.fixture
def driver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    for module in (gpus, card_profile):
        monkeypatch.setattr(module, "pynvml", Driver(name))
    return name


@pytest.mark.parametrize("driver", CARDS, indirect=True)
def test_a_profile_from_the_drivers_answers(driver: str) -> None:
    assert gpus.profile(gpu(driver)) is None, "no data sheet stands for this version of the card"
    found = derive(ask(gpu(driver)))
    processors, bandwidth, half = WANTED[driver]
    assert found.processors == processors
    assert found.dram_bytes_per_us / 1e3 == pytest.approx(bandwidth, rel=1e-3)
    assert found.matrix_flops_per_us["bf16"] / 1e6 == pytest.approx(half, rel=1e-3)
    assert found.matrix_flops_per_us["tf32"] == found.matrix_flops_per_us["bf16"] / 2
    assert profile_of(found.text) == found
    assert EvaluatorConfig(profile=found.text).profile == found.text


def test_what_is_made_of_a_cards_answers_is_near_its_data_sheet() -> None:
    made = derive(Answers("NVIDIA L40S", 89, 142, 48 * 10**9, 2520, 9001, 384))
    for name in ("dram_bytes_per_us", "fp32_flops_per_us"):
        assert getattr(made, name) == pytest.approx(getattr(L40S, name), rel=0.03)
    assert made.matrix_flops_per_us["bf16"] == pytest.approx(L40S.matrix_flops_per_us["bf16"], rel=0.03)
    h200 = derive(Answers("NVIDIA H200", 90, 132, 141 * 10**9, 1980, 3201, 6144), Rates(4.3e6, 2.4, 60 << 20, 232_448, 132))
    assert (h200.arch, h200.shared_bytes, h200.l2_bytes) == (H200.arch, H200.shared_bytes, H200.l2_bytes)
    assert h200.dram_bytes_per_us == H200.dram_bytes_per_us
    # 132 processors * 1980 MHz * 4096 = 1.07e15: the data sheet has 0.99e15 at its own clock, 0.79e15 are measured
    assert 1.0 < h200.matrix_flops_per_us["bf16"] / H200.matrix_flops_per_us["bf16"] < 1.4


@pytest.mark.parametrize("driver", ["NVIDIA L40"], indirect=True)
async def test_a_card_is_measured_once(driver: str, tmp_path: Path) -> None:
    runner: Any = PlayedRunner(0, [RATES])
    runner.gpu = gpu(driver)
    found = await measured_profile(runner, RateStore(tmp_path / "cards.jsonl"))
    assert [type(question) for question, _ in runner.asked] == [MeasureRates]
    assert (found.dram_bytes_per_us, found.launch_us, found.l2_bytes) == (1.4e6, 3.1, 48 << 20)
    with (tmp_path / "cards.jsonl").open("a") as file:
        file.write('{"uuid": "GPU-0", "driver": "580.1", "rates": {"dram')
    idle: Any = PlayedRunner(0, [])
    idle.gpu = gpu(driver)
    assert await measured_profile(idle, RateStore(tmp_path / "cards.jsonl")) == found


@pytest.mark.parametrize("driver", ["NVIDIA L40"], indirect=True)
async def test_a_measurement_that_fails_is_ours(driver: str) -> None:
    runner: Any = PlayedRunner(0, [Failed(Status.CRASH, "no memory")])
    runner.gpu = gpu(driver)
    with pytest.raises(EvaluatorFailed, match=r"cannot be measured: no memory$"):
        await measured_profile(runner, RateStore(None))


def test_cards_that_are_refused_say_why_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    old = Answers("Tesla T4", 75, 40, 16 * GIB, 1590, 5001, 256)
    assert refusal(old) == ("Tesla T4 has compute capability 7.5; 8.0 or newer is needed for bfloat16 and tf32: use --device cpu")
    assert refusal(Answers("NVIDIA A100", 80, 108, 40 * GIB, 1410, 1215, 5120)) is None
    for module in (gpus, card_profile):
        monkeypatch.setattr(module, "pynvml", Driver("NVIDIA L40", frozenset({"NumGpuCores"})))
    with pytest.raises(ValueError, match=r"^cuda:0 \(NVIDIA L40\): the driver tells too little for a profile: [^\n]*$"):
        card_profile.check(gpu("NVIDIA L40"))


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("NVIDIA H200", "h200"), ("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA A100-SXM4-80GB", "a100"), ("NVIDIA L40S", "l40s"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"), ("NVIDIA B200", "b200"), ("NVIDIA GeForce RTX 4090 D", None),
        ("NVIDIA GH200 480GB", None), ("NVIDIA H200 NVL", None), ("NVIDIA L40", None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
    ],
)  # fmt: skip
def test_names_of_models(name: str, profile: str | None) -> None:
    assert gpus.profile(gpu(name)) == (None if profile is None else PROFILES[profile])
