"""A form stands for a task: it survives other names, constants, sizes and layout, and nothing else."""

from __future__ import annotations

import pytest

from envs.chains import generate
from envs.problems import load_suite
from rlkernel.sources.normal_form import normal_form

SOURCE = '''
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    """A block."""

    def __init__(self, width: int = 64):
        super(Block, self).__init__()
        self.linear = nn.Linear(width, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # fused
        return F.gelu(self.linear(x)) * 0.5


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.block = Block(width=width)
        self.register_buffer("scale", torch.ones(width))

    def forward(self, x):
        y = self.block(x)
        return (y + self.scale).sum(dim=-1)


batch = 16
WIDTH = 2 * 1024


def get_inputs():
    return [torch.rand(batch, WIDTH)]


def get_init_inputs():
    return [WIDTH]
'''
DISGUISED = '''
from torch import nn
from torch.nn import functional
import torch as t

N = 8


def get_init_inputs(): return [48]
def get_inputs(): return [t.rand(N, 48)]


class Inner(nn.Module):
    def __init__(me, n=3):
        super().__init__()
        me.proj = nn.Linear(n, n, bias=False)

    def forward(me, a):
        return functional.gelu(me.proj(a)) * 0.125


class Model(nn.Module):
    """Another one."""

    def __init__(self, n):
        super(Model, self).__init__()
        self.inner = Inner(n=n)
        self.register_buffer("gain", t.ones(n))

    def forward(self, a):
        b = self.inner(a)
        return (b + self.gain).sum(dim=-1)
'''.replace("me.", "self.").replace("(me", "(self")


def test_other_names_constants_sizes_and_layout_have_the_same_form() -> None:
    assert normal_form(DISGUISED) == normal_form(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("F.gelu", "F.relu"),
        (" * 0.5", " + 0.5"),
        ("bias=False", "bias=True"),
        ("sum(dim=-1)", "mean(dim=-1)"),
        ("y + self.scale", "self.scale"),
        ("dim=-1", "keepdim=-1"),
    ],
)
def test_other_work_has_another_form(old: str, new: str) -> None:
    assert old in SOURCE and normal_form(SOURCE.replace(old, new)) != normal_form(SOURCE)


def test_chains_have_the_form_of_their_operators() -> None:
    chains = generate(200, seed=3)
    suite = [problem for problem in load_suite() if not problem.name.startswith("level2/chain")]
    assert not {normal_form(problem.source) for problem in chains} & {normal_form(problem.source) for problem in suite}
    assert len({normal_form(problem.source) for problem in chains}) > 150


@pytest.mark.parametrize(("source", "message"), [("def", "not a Python file"), ("Model = 1", "it defines no Model")])
def test_what_has_no_form(source: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        normal_form(source)
