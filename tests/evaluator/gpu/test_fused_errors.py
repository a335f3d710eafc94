"""Our kernels for a reference's own error: which tensors they take, and that they give what torch's operators give."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from rlkernel.evaluator.judging.errors.error_passes import ByTorch, Sums

WIDE, REAL, HALF = torch.float64, torch.float32, torch.float16


def tensors(found: torch.dtype, *others: torch.dtype, device: str = "cpu") -> list[torch.Tensor]:
    """An output, its exact values and further tensors that miss these by a little."""
    made = torch.Generator(device).manual_seed(1)
    exact = torch.randn(37, 129, dtype=WIDE, device=device, generator=made)

    def near() -> torch.Tensor:
        return exact * (1.0 + 1e-3 * torch.randn(exact.shape, dtype=WIDE, device=device, generator=made))

    return [near().to(found), exact, *(near().to(dtype) for dtype in others)]


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        (tensors(REAL), True),
        (tensors(HALF, WIDE), True),
        (tensors(REAL, REAL, REAL), True),
        (tensors(REAL, WIDE, REAL, REAL), True),
        ([t.t() for t in tensors(REAL, WIDE)], True),
        (tensors(WIDE), False),  # no kernel reads an output in float64
        (tensors(REAL, REAL), False),
        ([t[:, ::2] for t in tensors(REAL)], False),  # with gaps between its elements
        ([tensors(REAL)[0], tensors(REAL)[1].t().contiguous().t()], False),  # each lies otherwise
    ],
)
def test_which_tensors_the_kernels_read(room: Any, given: list[torch.Tensor], fits: bool) -> None:
    assert room.fused_errors.fits(given) is fits
    assert isinstance(room.fused_errors.passes(given, math.inf), ByTorch)  # without a GPU, in any case


@pytest.mark.gpu
@pytest.mark.parametrize("huge", [math.inf, 1.5])
@pytest.mark.parametrize("odd", [None, math.nan, math.inf])
@pytest.mark.parametrize("kinds", [(REAL,), (HALF, WIDE), (torch.bfloat16, WIDE), (REAL, WIDE, REAL, REAL)])
def test_the_kernels_give_what_torch_gives(
    kinds: tuple[torch.dtype, ...], odd: float | None, huge: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where a runner keeps what it compiles
    from rlkernel.evaluator.gpu.fused_errors import passes  # which needs CUDA's bindings

    given = tensors(*kinds, device="cuda")
    if odd is not None:
        given[0][3, 4] = given[1][5, 6] = given[-1][7, 8] = odd
    ours, theirs = passes(given, huge), ByTorch(given, huge)
    assert not isinstance(ours, ByTorch)
    found, wanted = ours.sums(), theirs.sums()
    assert flat(found) == pytest.approx(flat(wanted), rel=1e-9, nan_ok=True)
    root, mean = math.sqrt(found.size / found.count), found.total / found.count
    (squares, worst), (same, bounds) = ours.extremes(root, mean), theirs.extremes(root, mean)
    assert squares == pytest.approx(same, rel=1e-9)
    finite = [n == found.count for _, n in found.sides]
    assert [x for x, told in zip(worst, finite, strict=True) if told] == pytest.approx(
        [x for x, told in zip(bounds, finite, strict=True) if told], rel=1e-9
    )


def flat(sums: Sums) -> list[float]:
    """The numbers of the first pass."""
    return [sums.count, sums.size, sums.total, sums.given, *(x for side in sums.sides for x in side), sums.along]
