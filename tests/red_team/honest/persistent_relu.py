# level2/chain_bias_relu correct: persistent programs, properties of the device
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 8192

@triton.jit
def bias_relu(x_ptr, b_ptr, y_ptr, n, cols, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n) + tl.load(b_ptr + i % cols, mask=i < n)
        tl.store(y_ptr + i, tl.maximum(x, 0.0), mask=i < n)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        y = torch.empty_like(x)
        programs = 4 * torch.cuda.get_device_properties(x.device).multi_processor_count
        bias_relu[(programs,)](x, self.bias, y, x.numel(), x.shape[-1], BLOCK=1024)
        return y
