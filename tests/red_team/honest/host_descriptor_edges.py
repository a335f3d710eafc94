# level1/softmax correct: descriptors of the host with a block that is wider than the row, and an allocator that nothing calls
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def softmax_row(x, o, COLS, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    values = x.load([row, 0]).reshape(BLOCK)
    values = tl.where(tl.arange(0, BLOCK) < COLS, values, -float("inf"))
    values = tl.exp(values - tl.max(values, 0))
    o.store([row, 0], (values / tl.sum(values, 0)).reshape(1, BLOCK))


class ModelNew(nn.Module):
    def forward(self, x):
        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
        rows, cols = x.shape
        o = torch.empty_like(x)
        block = [1, 2 * triton.next_power_of_2(cols)]
        softmax_row[(rows,)](TensorDescriptor.from_tensor(x, block), TensorDescriptor.from_tensor(o, block), cols, BLOCK=block[1])
        return o
