"""Draws one token per row, by inverting the cumulative distribution at the row's own uniform number.

Legend: B rows, V vocabulary, N blocks of `BLOCK` tokens.
"""

from __future__ import annotations

import torch
from torch.nn.functional import pad

BLOCK = 256


def draw(logits_BV: torch.Tensor, u_B: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw token ids (int64) with their log-probabilities (float32) under softmax(logits / temperature), untruncated.

    u_B: float64 in [0, 1). The search has two levels, over the mass of blocks and then inside one, so that no cumulative sum runs
    over the vocabulary; both are float64, since float32 loses too much. Nothing here waits for the device. A row whose logits
    are not finite gets a log-probability that is NaN.
    """
    x_BV = logits_BV.float() / temperature
    top_B1 = x_BV.amax(-1, keepdim=True)
    weight_BV = pad((x_BV - top_B1).exp(), (0, -x_BV.shape[1] % BLOCK))
    weight_BNK = weight_BV.view(len(weight_BV), -1, BLOCK)
    mass_BN = weight_BNK.sum(-1, dtype=torch.float64).cumsum(-1)
    total_B1 = mass_BN[:, -1:]
    target_B1 = torch.minimum(u_B[:, None] * total_B1, _below(total_B1))
    block_B1 = torch.searchsorted(mass_BN, target_B1, right=True).clamp(max=mass_BN.shape[1] - 1)
    before_B1 = torch.where(block_B1 > 0, mass_BN.gather(1, (block_B1 - 1).clamp(min=0)), 0.0)
    inside_BK = weight_BNK.gather(1, block_B1[:, :, None].expand(-1, 1, BLOCK))[:, 0].double().cumsum(-1)
    # Below the block's own mass, whatever rounding says: a token without weight is never found.
    rest_B1 = torch.minimum(target_B1 - before_B1, _below(inside_BK[:, -1:]))
    ids_B1 = block_B1 * BLOCK + torch.searchsorted(inside_BK, rest_B1, right=True).clamp(max=BLOCK - 1)
    ids_B1 = ids_B1.clamp(max=x_BV.shape[1] - 1)
    logprob_B1 = x_BV.gather(1, ids_B1) - top_B1 - total_B1.log().float()
    return ids_B1[:, 0], logprob_B1[:, 0]


def _below(x: torch.Tensor) -> torch.Tensor:
    return torch.nextafter(x, torch.zeros_like(x))
