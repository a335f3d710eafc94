# own/double_softmax incorrect gpu=correct catalogue=53: computed in float32, stored as float64; a GPU allows what the rounding of inputs would do
import torch
import torch.nn as nn
import triton
import triton.language as tl


N, M = 2048, 4096


@triton.jit
def kernel(x_ptr, y_ptr, M, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * M + i, mask=i < M, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * M + i, e / tl.sum(e, 0), mask=i < M)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape, dtype=torch.float64, device=x.device)
        kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
