"""What structural zeros leave of a reference's products, counted by hand; what chance has made zero is no structure."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.judging.costs.least_work import LEAST, OF_MATTERING, WHOLE, Matters
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.evaluator.judging.zeros.full_share import Studied, extended, full_share
from rlkernel.evaluator.judging.zeros.mattering import Unknown, count
from rlkernel.reference import load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

N, M, W = 4096, 1024, 256
SMALL = {small}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter({weight})

    def forward(self, a, b):
        place = torch.arange(a.shape[-2], device=a.device)
        back = place[:, None] - place[None, :]
        return {forward}

def get_inputs():
    return [{a}, {b}]

def get_init_inputs():
    return []
"""
SQUARE = "torch.randn(N, N)"
H200 = PROFILES["h200"]


def source(forward: str, a: str = SQUARE, b: str = SQUARE, small: str = "{'N': 32}", weight: str = "torch.randn(1)") -> str:
    values = {"forward": forward, "a": a, "b": b, "small": small, "weight": weight}
    text = SOURCE
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def share(text: str) -> Matters | None:
    return full_share(Studied("p", text, H200, text))


def counted(text: str) -> tuple[int, int, int]:
    """Terms that matter, sums that have one, and all terms, at the small sizes."""
    found = count(load_reference(text, small=True, name="p"), H200, 2.0).products.values()
    return sum(one.matter for one in found), sum(one.sums for one in found), sum(one.all for one in found)


def operations(found: Matters | None, *lengths: int) -> float:
    """The share of operations, where all steps have equally many, in sums of so many terms."""
    assert found is not None
    return sum(one.operations(1.0, length) for one, length in zip(found.steps.values(), lengths, strict=True)) / len(lengths)


N = 32
TRIANGLES = N * (N + 1) * (N + 2) // 6
HALF = N * (N + 1) // 2


@pytest.mark.parametrize(
    ("text", "terms", "sums"),
    [
        (source("torch.triu(torch.triu(a) @ torch.triu(b))"), TRIANGLES, HALF),
        (source("a @ b", "torch.tril(torch.rand(N, N))", "torch.tril(torch.rand(N, N))"), TRIANGLES, HALF),
        (source("torch.tril(a @ b)"), HALF * N, HALF),
        (source("torch.tril(a) @ b"), HALF * N, N * N),
        (source("torch.diag(a[0]) @ b"), N * N, N * N),
        (source("(a @ b) * (back == 0)"), N * N, N),
        (source("(a @ b).masked_fill_(back < 0, 0.0)"), HALF * N, HALF),
        (source("a @ b"), N**3, N * N),
        (source("torch.relu(a @ b)"), N**3, N * N),
        (source("torch.tril(torch.relu(a)) @ b"), HALF * N, N * N),
        (source("(a @ b) * self.w", weight="torch.zeros(1)"), N**3, N * N),
        (source("a @ self.w", weight="torch.zeros(N, N)"), N**3, N * N),
    ],
)  # fmt: skip
def test_the_terms_of_a_product_that_matter(text: str, terms: int, sums: int) -> None:
    assert counted(text) == (terms, sums, N**3)


def test_the_terms_of_an_attention_in_a_window() -> None:
    """Of 32 queries each sees itself and 3 before: 4 * 32 - (3 + 2 + 1) pairs, in two products of 8 and of 5 columns. What the
    first query sees is itself, whatever its score."""
    inputs = "torch.randn(N, 8)", "torch.randn(N, 5)"
    masked = source("torch.softmax((a @ a.t()).masked_fill((back < 0) | (back > 3), float('-inf')), -1) @ b", *inputs)
    assert counted(masked)[::2] == (13 * (4 * 32 - 6) - 8, 13 * 32 * 32)
    added = source("torch.softmax(a @ a.t() + torch.where((back < 0) | (back > 3), -1e9, 0.0), -1) @ b", *inputs)
    assert counted(added)[::2] == (13 * (4 * 32 - 6) - 8, 13 * 32 * 32)
    fused = source("F.scaled_dot_product_attention(a, a, b, attn_mask=(back >= 0) & (back <= 3))", *inputs)
    assert counted(fused)[::2] == (13 * (4 * 32 - 6) - 8, 13 * 32 * 32)


@pytest.mark.parametrize(
    "text",
    [
        source("(a > 0).float() @ b"),
        source("torch.round(a @ b).tril()"),
        source("torch.where(a > 0, a @ b, 0.0)"),
        source("F.dropout(torch.tril(a), 0.95) @ b"),
        source("F.one_hot((a @ b).argmax(1), 8).float()"),
        source("a.mul_(2.0) @ b"),
    ],
)
def test_nothing_is_said_where_gradients_say_nothing_or_chance_draws_zeros(text: str) -> None:
    with pytest.raises(Unknown):
        counted(text)


def of_triangles(n: int) -> float:
    return (2 * n * (n + 1) * (n + 2) / 6 - n * (n + 1) / 2) / (2 * n**3)


def of_window(window: int, n: int = 4096, columns: int = 32) -> float:
    """A score takes 63 operations, unless it is the first row's only one, and what it is multiplied by 64, but for the first of
    each of 32 sums."""
    pairs = window * n - window * (window - 1) // 2
    return ((2 * columns - 1) * (pairs - 1) + 2 * columns * pairs - columns * n) / (4 * columns * n**2)


WINDOWED = "torch.softmax((0.2 * a @ b.transpose(-1, -2)).masked_fill((back < 0) | (back >= {w}), float('-inf')), -1) @ b"
ROWS = "torch.randn(N, 32)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (source("torch.triu(a @ b)", "torch.triu(torch.rand(N, N))", "torch.triu(torch.rand(N, N))"), of_triangles(4096)),
        (source("torch.tril(torch.tril(a) @ torch.tril(b))", small="{'N': 160}"), of_triangles(4096)),
        (source("torch.diag(a[0]) @ b"), 1 / (2 * 4096)),
        (source(WINDOWED.replace("{w}", "64"), ROWS, ROWS), of_window(64)),
        (source(WINDOWED.replace("{w}", "W"), ROWS, ROWS, "{'N': 64, 'W': 8}"),
         of_window(256)),
        (source(WINDOWED.replace("{w}", "W"), ROWS, ROWS, "{'N': 64, 'W': 80}"),
         of_window(256)),
    ],
)  # fmt: skip
def test_the_share_at_full_shape(text: str, expected: float) -> None:
    """A triangle times a triangle is about a sixth, a window of w about w/n, also if it is longer than the small sequence."""
    lengths = (32, 4096) if "softmax" in text else (4096,)
    assert operations(share(text), *lengths) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        source("a @ b"),
        source("torch.tril(a @ b)"),
        source("torch.relu(a) @ b"),
        source("F.scaled_dot_product_attention(a, a, b, is_causal=True)", ROWS, ROWS),
        source("torch.tril(torch.relu(a - 2.5)) @ torch.tril(b)"),
        source("(a @ b) * 0.0"),
        source("torch.tril(a) @ torch.tril(b) @ (back > 1e9).float()"),
        source(WINDOWED.replace("{w}", "3000"), ROWS, ROWS),
    ],
)
def test_what_keeps_the_usual_floors(text: str) -> None:
    """A half and more, what chance may have made zero, what would be nothing, and a window beyond the sizes that are tried."""
    assert share(text) is None


def test_blocks_of_a_mask_and_a_band_that_is_given() -> None:
    """Of 4096 places each sees the 64 of its block; of a matrix with 8 diagonals beside its own on each side, 17 in a row but for
    the 8 + 7 + ... + 1 that the corners lack."""
    blocks = source(
        "torch.softmax((0.2 * a @ b.t()).masked_fill(place[:, None] // 64 != place // 64, float('-inf')), -1) @ b", ROWS, ROWS
    )
    assert operations(share(blocks), 32, 4096) == pytest.approx((64 * (63 + 64) - 32) / (4 * 32 * 4096))
    found = share(source("a @ b", "torch.randn(N, N).triu(-8).tril(8)", "torch.randn(N, M)", "{'N': 32, 'M': 16}"))
    assert found is not None
    band = 17 * 4096 - 2 * 36
    assert operations(found, 4096) == pytest.approx((2 * band - 4096) / (2 * 4096**2))
    assert found.inputs == pytest.approx((band / 4096**2, 1.0))


def test_a_polynomial_must_give_all_counts() -> None:
    cubes = [t**3 + 2 * t for t in range(5, 11)]
    assert extended(range(5, 11), cubes, 100) == 100**3 + 200
    with pytest.raises(Unknown):
        extended(range(5, 11), [cubes[0] + 1, *cubes[1:]], 100)


def test_floors_follow_the_share() -> None:
    """Two lower triangles of 4096: a sixth of the arithmetic, nine tenths of it at least, and half of each input."""
    dense = prepare(source("torch.tril(a @ b)"), "p", H200, Precision.PYTORCH).costs
    text = source("torch.tril(a @ b)", "torch.tril(torch.randn(N, N))", "torch.tril(torch.randn(N, N))")
    found = prepare(text, "p", H200, Precision.PYTORCH).costs
    assert (dense.least_share, found.products) == (LEAST, 2.0 * 4096**3)
    assert found.least_share == pytest.approx(WHOLE * of_triangles(4096))
    assert found.floor_us < dense.floor_us
    again = prepare(text.replace("torch.tril(a @ b)", "torch.tril(a @ a)"), "p", H200, Precision.PYTORCH).costs
    assert again.least_share == pytest.approx(OF_MATTERING * of_triangles(4096)), "a square may be had with less"


@pytest.mark.parametrize(
    ("forward", "part"),
    [
        ("a.masked_fill(back.abs() >= W, 0.0) + b", (2 * 256 - 1) / 4096 - 256 * 255 / 4096**2),
        ("a.masked_fill(back < 0, float('-inf')).softmax(-1) * 2 + b", 0.5 + 1 / 8192),
        ("a * (back < N) + b", 1.0),
        ("torch.where(a > 0, a, 0.0) + b", 1.0),  # which chance decides
    ],
)
def test_of_inputs_that_a_mask_hides_in_part_no_more_is_read(forward: str, part: float) -> None:
    """Also without products."""
    whole = prepare(source("a * 2 + b"), "p", H200, Precision.PYTORCH).costs.floor_us
    found = prepare(source(forward, small="{'N': 32, 'W': 8}"), "p", H200, Precision.PYTORCH).costs.floor_us
    assert found / whole == pytest.approx((part + 2) / 3, abs=0.01)


def test_projections_are_needed_whole_around_an_attention_in_a_window() -> None:
    """Two projections of 4096 rows by 64 columns, of which the first may leave out the first row, and two products with 4096^2
    scores each, of which the window leaves 64 in a row."""
    forward = WINDOWED.replace("{w}", "64").replace("0.2 * a", "0.02 * (a @ self.w)") + " @ self.w"
    rows = "torch.randn(N, W)"
    text = source(forward, rows, rows, "{'N': 32, 'W': 8}", "torch.randn(W, W)").replace("1024, 256", "1024, 64")
    costs = prepare(text, "p", H200, Precision.PYTORCH).costs
    projection, scores = 2 * 4096 * 64**2, 2 * 2 * 4096**2 * 64
    assert costs.products == 2 * projection + scores
    needed = 4095 * 64 * 127 + projection + of_window(64, columns=64) * scores
    assert costs.least_share == pytest.approx(OF_MATTERING * needed / costs.products), "the last two may be folded"
