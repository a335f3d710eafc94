"""Which references tell places apart at full shape and not where results are compared."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.evaluator.judging.sizes.lengthening import lengthened
from rlkernel.types import Precision, Problem

SOURCE = """
import torch
import torch.nn as nn

H, T, D = 8, 512, 16
SMALL = {{"T": 32, "D": 8}}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("band", torch.ones(T, T).tril().triu({band}))

    def forward(self, x):
        i = torch.arange(T, device=x.device)
        return x * ({factor})

def get_inputs():
    return [torch.randn(2, H, T, D)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("factor", "hidden"),
    [
        ("(i < 100)[:, None]", True),
        ("(i <= 20)[:, None]", False),
        ("(i < 1000)[:, None]", False),  # nowhere is it otherwise
        ("i.clamp(max=100)[:, None]", True),
        ("i.clamp(min=0)[:, None]", False),
        ("torch.minimum(i, torch.full_like(i, 40))[:, None]", True),
        ("(i[:, None] - i[None, :] < 128).sum(1)[:, None]", True),
        ("(i[:, None] >= i[None, :]).sum(1)[:, None]", False),
        ("torch.ones(T, T, device=x.device).triu(-100).sum(1)[:, None]", True),
        ("self.band.sum(1)[:, None]", True),
        ("(i // 100)[:, None]", True),
        ("(i // 10)[:, None]", False),
        ("(i >> 6)[:, None]", True),
        ("(i % 64)[:, None]", True),
        ("(i & 15)[:, None]", False),
        ("((i > 3) & (i < 20))[:, None]", False),
        ("(x < 1000)", False),  # which depends on what is drawn
        ("(torch.rand(T, 1, device=x.device) < 2)", False),
        ("x[:, :, :100].sum(2, keepdim=True)", True),  # all of 32
        ("x[:, :, 100:].sum(2, keepdim=True)", True),  # nothing of 32
        ("x[:, :, :20].sum(2, keepdim=True)", False),
        ("x[:, :, :1000].sum(2, keepdim=True)", False),
        ("x.sum(2, keepdim=True) if T > 100 else x", True),  # a branch that large sizes take alone
        ("x.sum(2, keepdim=True) if T < 100 else x", False),
        ("x[:, :, :T].sum(2, keepdim=True)", False),
    ],
)
def test_what_shows_at_full_shape_alone(factor: str, hidden: bool) -> None:
    assert (
        prepare(SOURCE.format(factor=factor, band=-100 if "band" in factor else -5), "test", H200, Precision.STRICT).distances
        == hidden
    )


def test_heads_pay_for_a_length_that_shows_it() -> None:
    source = SOURCE.format(
        band=-5, factor="((i[:, None] - i[None, :] < 128) * torch.ones(2, H, T, T, device=x.device)).mean(-1)[..., None]"
    )
    longer = lengthened(Problem("p", 1, "train", source), H200, heads_pay=True)
    looks = [
        (look.sizes["T"], look.sizes.get("H", 8), prepare(look.source, "p", H200, Precision.STRICT).distances) for look in longer
    ]
    assert (256, 4, False) in looks, looks
