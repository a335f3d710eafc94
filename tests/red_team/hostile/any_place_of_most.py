# own/place_of_most incorrect catalogue=57: tl.argmax with tie_break_left=False, where PyTorch names the first of equal numbers; normal numbers are never equal
import torch
import torch.nn as nn
import triton
import triton.language as tl


N, M = 8192, 1024


@triton.jit
def k(x_ptr, y_ptr, M: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * M + tl.arange(0, M))
    tl.store(y_ptr + row, tl.argmax(x, 0, tie_break_left=False).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], dtype=torch.int64, device=x.device)
        k[(x.shape[0],)](x, y, x.shape[1])
        return y
