# own/scales_into_slots correct coverage>0.5 catalogue=58: all slots are written
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def write_scales(key, scales, slots, H: tl.constexpr, D: tl.constexpr, BH: tl.constexpr, BD: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + token)
    head, column = tl.arange(0, BH), tl.arange(0, BD)
    inside = (head[:, None] < H) & (column[None, :] < D)
    rows = tl.load(key + token * H * D + head[:, None] * D + column[None, :], mask=inside, other=0.0)
    largest = tl.max(tl.abs(rows), 1)
    tl.store(scales + slot * H + head, tl.maximum(largest / (128 - 1), 1e-6), mask=head < H)


class ModelNew(nn.Module):
    def forward(self, key, scales, slots):
        tokens, heads, dim = key.shape
        out = scales.clone()
        write_scales[(tokens,)](
            key, out, slots, heads, dim, BH=triton.next_power_of_2(heads), BD=triton.next_power_of_2(dim), num_warps=1
        )
        return out
