"""Draws one token per row, by inverting the cumulative distribution at the row's own uniform number.

    blocks of 256 tokens: largest logit and mass of each   one pass over the logits, no probability is kept
    rows: which block, by the cumulative masses            float64, as many numbers as there are blocks
    inside of that block alone: which token                float64

Legend: B rows, V vocabulary, N blocks of `BLOCK` tokens, K tokens of a block.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch.nn.functional import pad

BLOCK = 256
TOGETHER = 16
"""Blocks that one program of the kernel looks at."""


def draw(logits_BV: torch.Tensor, u_B: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw token ids (int64) with their log-probabilities (float32) under softmax(logits / temperature), untruncated.

    u_B: float64 in [0, 1). Sums of blocks are float64, since float32 loses too much. Nothing here waits for the device. A row
    whose logits are not finite gets a log-probability that is NaN.
    """
    V = logits_BV.shape[1]
    top_BN, mass_BN = masses_on_gpu(logits_BV, temperature) if logits_BV.is_cuda else masses(logits_BV, temperature)
    top_B1 = top_BN.amax(-1, keepdim=True)
    mass_BN = (mass_BN.double() * (top_BN - top_B1).double().exp()).cumsum(-1)
    total_B1 = mass_BN[:, -1:]
    target_B1 = torch.minimum(u_B[:, None] * total_B1, _below(total_B1))
    block_B1 = torch.searchsorted(mass_BN, target_B1, right=True).clamp(max=mass_BN.shape[1] - 1)
    before_B1 = torch.where(block_B1 > 0, mass_BN.gather(1, (block_B1 - 1).clamp(min=0)), 0.0)
    ids_BK = block_B1 * BLOCK + torch.arange(BLOCK, device=logits_BV.device)
    x_BK = logits_BV.gather(1, ids_BK.clamp(max=V - 1)).float() / temperature
    inside_BK = torch.where(ids_BK < V, (x_BK - top_B1).exp(), 0.0).double().cumsum(-1)
    # Below the block's own mass, whatever rounding says: a token without weight is never found.
    rest_B1 = torch.minimum(target_B1 - before_B1, _below(inside_BK[:, -1:]))
    at_B1 = torch.searchsorted(inside_BK, rest_B1, right=True).clamp(max=BLOCK - 1)
    logprob_B1 = x_BK.gather(1, at_B1) - top_B1 - total_B1.log().float()
    return ids_BK.gather(1, at_B1).clamp(max=V - 1)[:, 0], logprob_B1[:, 0]


def masses(logits_BV: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest x = logits / temperature of each block, and the sum of exp(x - largest), both (B, N) and float32."""
    x_BV = logits_BV.float() / temperature
    x_BNK = pad(x_BV, (0, -x_BV.shape[1] % BLOCK), value=float("-inf")).view(len(x_BV), -1, BLOCK)
    top_BN = x_BNK.amax(-1)
    return top_BN, (x_BNK - _finite(top_BN)[..., None]).exp().sum(-1)


def masses_on_gpu(logits_BV: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """What `masses` returns, by a kernel that reads the logits once and in their own type."""
    logits_BV = logits_BV if logits_BV.stride(1) == 1 else logits_BV.contiguous()
    B, V = logits_BV.shape
    N = triton.cdiv(V, BLOCK)
    top_BN = torch.empty((B, N), dtype=torch.float32, device=logits_BV.device)
    mass_BN = torch.empty_like(top_BN)
    masses_kernel[(B, triton.cdiv(N, TOGETHER))](
        logits_BV, top_BN, mass_BN, logits_BV.stride(0), V, N, float(temperature), TOGETHER=TOGETHER, BLOCK=BLOCK, num_warps=4
    )
    return top_BN, mass_BN


@triton.jit
def masses_kernel(logits_ptr, top_ptr, mass_ptr, row_stride, V, N, temperature, TOGETHER: tl.constexpr, BLOCK: tl.constexpr):
    """Find the largest logit and the mass of some blocks of one row."""
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1) * TOGETHER + tl.arange(0, TOGETHER)
    at = block[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    x = tl.load(logits_ptr + row * row_stride + at, mask=at < V, other=float("-inf")).to(tl.float32) / temperature
    top = tl.max(x, axis=1)
    # A block of nothing but -inf has no mass.
    base = tl.where(top == float("-inf"), 0.0, top)
    mass = tl.sum(tl.exp(x - base[:, None]), axis=1)
    tl.store(top_ptr + row * N + block, top, mask=block < N)
    tl.store(mass_ptr + row * N + block, mass, mask=block < N)


def _finite(top_BN: torch.Tensor) -> torch.Tensor:
    """The largest logit, or 0 in a block of nothing but -inf, which has no mass."""
    return torch.where(top_BN == float("-inf"), 0.0, top_BN)


def _below(x: torch.Tensor) -> torch.Tensor:
    return torch.nextafter(x, torch.zeros_like(x))
