"""Random numbers of reference files that draw by other generators than torch's own: they follow the seed, and it alone."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from rlkernel import seeds
from rlkernel.reference import Reference, load_reference
from rlkernel.seeds import following

FILE = """
import random
import numpy as np
import torch
import torch.nn as nn
{top}

class Model(nn.Module):
    def forward(self, x):
        return x

def get_inputs():
    {draw}

def get_init_inputs():
    return []
"""
DRAWS = {
    "numpy": "return [torch.from_numpy(np.random.randn(8))]",
    "numpy, seeded": "np.random.seed(0); return [torch.from_numpy(np.random.randn(8))]",
    "numpy's older generator": "return [torch.from_numpy(np.random.RandomState(0).randn(8))]",
    "numpy's newer generator": "return [torch.from_numpy(np.random.default_rng(0).random(8))]",
    "torch, seeded": "torch.manual_seed(0); return [torch.randn(8)]",
    "a generator": "return [torch.randn(8, generator=torch.Generator().manual_seed(0))]",
    "a generator without a seed": "return [torch.randn(8, generator=torch.Generator())]",
    "a generator for a GPU": "return [torch.randn(8, generator=torch.Generator(device='cuda').manual_seed(0), device='cuda')]",
    "numpy's bits": "return [torch.from_numpy(np.random.Generator(np.random.PCG64(0)).random(8))]",
    "numpy's bits, older": "return [torch.from_numpy(np.random.RandomState(np.random.MT19937(0)).randn(8))]",
    "python": "return [torch.tensor([random.random() for _ in range(8)])]",
}
KEPT = {
    "numpy's newer": ("G = np.random.default_rng(3)", "return [torch.from_numpy(G.random(8))]"),
    "numpy's older": ("G = np.random.RandomState(3)", "return [torch.from_numpy(G.randn(8))]"),
    "numpy's bits, kept": ("G = np.random.Generator(np.random.Philox(3))", "return [torch.from_numpy(G.random(8))]"),
    "torch's": ("G = torch.Generator().manual_seed(3)", "return [torch.randn(8, generator=G)]"),
    "imported": ("from numpy.random import default_rng as r; G = r()", "return [torch.from_numpy(G.random(8))]"),
}


def reference(draw: str, top: str = "") -> Reference:
    return load_reference(FILE.format(top=top, draw=draw), small=False)


def drawn(one: Reference, seed: int) -> list[float]:
    (x,) = one.inputs(seed)
    found: list[float] = x.tolist()
    return found


@pytest.mark.parametrize(("top", "draw"), [*(("", draw) for draw in DRAWS.values()), *KEPT.values()], ids=[*DRAWS, *KEPT])
def test_the_seed_alone_decides(top: str, draw: str) -> None:
    one, other = reference(draw, top), reference(draw, top)
    first = drawn(one, 1)
    assert drawn(one, 2) != first
    # Neither what was drawn before, nor what others have drawn meanwhile, changes anything.
    np.random.seed(5)
    random.random()
    assert (drawn(one, 1), drawn(other, 1)) == (first, first)
    assert len(set(first)) == 8


def test_two_seeds_of_a_file_give_other_numbers_and_one_gives_the_same() -> None:
    (a, b, c) = reference(
        "g = [torch.Generator().manual_seed(s) for s in (0, 1, 0)]; return [torch.randn(4, generator=one) for one in g]"
    ).inputs(7)
    assert torch.equal(a, c) and not torch.equal(a, b)


def test_sizes_that_a_file_chooses_by_a_seed_of_its_own_stay() -> None:
    one = reference("random.seed(0); return [torch.zeros(random.randint(1, 10**6))]")
    assert one.inputs(1)[0].shape == one.inputs(2)[0].shape


def test_outside_all_is_as_before() -> None:
    names = (np.random.seed, np.random.default_rng, np.random.RandomState, torch.Generator, torch.manual_seed, random.Random)
    random.seed(1)
    np.random.seed(1)
    with following(3):
        random.random()
        np.random.rand()
    assert names == (
        np.random.seed,
        np.random.default_rng,
        np.random.RandomState,
        torch.Generator,
        torch.manual_seed,
        random.Random,
    )
    after = random.random(), float(np.random.rand())
    random.seed(1)
    np.random.seed(1)
    assert (random.random(), float(np.random.rand())) == after


def test_a_seed_that_a_file_sets_for_cards_is_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    set_to: list[int] = []
    monkeypatch.setattr(seeds, "_seed_cards", set_to.append)
    one = reference("torch.cuda.manual_seed_all(0); torch.cuda.manual_seed(1); torch.cuda.seed(); return [torch.zeros(1)]")
    for seed in (1, 2, 1):
        one.inputs(seed)
    first, second, again = set_to[:4], set_to[4:8], set_to[8:]
    assert first == again and first[1] == first[3]
    assert len({*first, *second}) == 6  # three of each: the round's own, and those of the seeds 0 and 1
