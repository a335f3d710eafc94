# level1/gather_columns correct: indices of 64 bits, a masked gather
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def gather(x_ptr, i_ptr, y_ptr, cols, picks, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(i_ptr + row * picks + j, mask=j < picks, other=0)
    tl.store(y_ptr + row * picks + j, tl.load(x_ptr + row * cols + place, mask=j < picks), mask=j < picks)


class ModelNew(nn.Module):
    def forward(self, x, index):
        y = torch.empty(index.shape, device=x.device, dtype=x.dtype)
        gather[(x.shape[0], triton.cdiv(index.shape[1], 256))](x, index, y, x.shape[1], index.shape[1], BLOCK=256, num_warps=2)
        return y
