# level2/chain_bias_gelu_scale correct: heuristics choose the block from the number of columns and whether it needs a mask
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 8192


@triton.heuristics(
    {
        "BLOCK": lambda args: min(1024, triton.next_power_of_2(args["cols"])),
        "EVEN": lambda args: args["cols"] % min(1024, triton.next_power_of_2(args["cols"])) == 0,
    }
)
@triton.jit
def bias_gelu_scale(x_ptr, b_ptr, y_ptr, cols, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    row = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        x = tl.load(x_ptr + row * cols + c) + tl.load(b_ptr + c)
    else:
        x = tl.load(x_ptr + row * cols + c, mask=c < cols) + tl.load(b_ptr + c, mask=c < cols)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)) * 0.5
    tl.store(y_ptr + row * cols + c, y, mask=c < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        y = torch.empty_like(x)
        rows, cols = x.shape
        bias_gelu_scale[lambda meta: (rows, triton.cdiv(cols, meta["BLOCK"]))](x, self.bias, y, cols)
        return y
