# relu correct coverage<1.0: register_buffer, ParameterList, ModuleDict, requires_grad_, and sizes kept as tensors
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.zeros(1))
        self.register_buffer("steps", torch.tensor(0, dtype=torch.int64), persistent=False)
        self.ps = nn.ParameterList([nn.Parameter(torch.zeros(1)) for _ in range(2)])
        self.heads = nn.ModuleDict({"a": nn.Linear(2, 2)})
        nn.init.zeros_(self.heads["a"].bias)
        nn.init.xavier_uniform_(self.heads["a"].weight)
        self.requires_grad_(False)
        self.eval()

    def forward(self, x):
        o = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        for p in self.ps:
            o = o + p
        return o + self.heads["a"].bias.sum() * 0 + self.shift
