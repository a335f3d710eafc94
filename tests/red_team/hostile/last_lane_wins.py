# own/last_of_segment runtime_error gpu=correct|incorrect catalogue=59: elements of one store write different values to one address, and the last is to stay; on a GPU any may
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, seg_ptr, o_ptr, N, S, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        seg = tl.load(seg_ptr + row * N + i, mask=i < N, other=0)
        x = tl.load(x_ptr + row * N + i, mask=i < N)
        tl.store(o_ptr + row * S + seg, x, mask=i < N)


class ModelNew(nn.Module):
    def forward(self, x, seg):
        B, N = x.shape
        S = 64 if N > 1000 else 16
        o = torch.empty(B, S, device=x.device)
        kernel[(B,)](x, seg, o, N, S, BLOCK=triton.next_power_of_2(N))
        return o
