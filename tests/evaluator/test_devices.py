"""Device profiles: their figures in the units that the docstring states, by hand."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.devices import A100, H200, PROFILES, DeviceProfile


def test_profiles_are_found_by_their_names() -> None:
    assert [profile.name for profile in PROFILES.values()] == list(PROFILES)
    assert set(PROFILES) == {"h200", "a100", "h100", "l40s", "rtx4090", "b200"}


def test_figures_of_the_h200() -> None:
    # 4.3e6 bytes per microsecond are 4.3 TB/s; 7.9e8 operations per microsecond are 790 TFLOP/s
    assert H200.dram_bytes_per_us / 1e6 == pytest.approx(4.3)
    assert H200.matrix_flops_per_us["bf16"] / 1e6 == pytest.approx(790)
    assert H200.arch == 90
    # a copy of 43 MB reads and writes 86 MB: 20 us
    assert 2 * 43e6 / H200.dram_bytes_per_us == pytest.approx(20.0)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_a_profile_is_consistent(profile: DeviceProfile) -> None:
    assert profile.l2_bytes_per_us > profile.dram_bytes_per_us
    assert profile.l2_bytes < profile.memory_bytes
    assert 48 << 10 < profile.shared_bytes < 256 << 10
    rates = profile.matrix_flops_per_us
    assert set(rates) == {"tf32", "fp16", "bf16"}
    assert profile.fp32_flops_per_us <= rates["tf32"] < rates["bf16"] == rates["fp16"]


@pytest.mark.parametrize(("profile", "processors", "shared"), [(H200, 132, 232_448), (A100, 108, 166_912)])
def test_tritons_driver_is_answered_from_the_profile(profile: DeviceProfile, processors: int, shared: int) -> None:
    answer = profile.properties
    assert (answer["multiprocessor_count"], answer["max_shared_mem"], answer["warpSize"]) == (processors, shared, 32)
