# own/segments correct: a loop between two loaded bounds, whose turns at full shape the input's whole numbers tell
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def seg(x, cu, y, D, BT: tl.constexpr, BD: tl.constexpr):
    b = tl.program_id(0); d = tl.program_id(1) * BD + tl.arange(0, BD)
    start = tl.load(cu + b); end = tl.load(cu + b + 1)
    acc = tl.zeros((BD,), tl.float32)
    for t in range(start, end, BT):
        rt = t + tl.arange(0, BT)
        acc += tl.sum(tl.load(x + rt[:, None] * D + d[None, :], mask=(rt[:, None] < end) & (d[None, :] < D), other=0.0), 0)
    tl.store(y + b * D + d, acc, mask=d < D)


class ModelNew(nn.Module):
    def forward(self, x, cu):
        B = cu.shape[0] - 1; D = x.shape[1]
        y = torch.empty((B, D), device=x.device)
        seg[(B, triton.cdiv(D, 64))](x, cu, y, D, BT=16, BD=64)
        return y
