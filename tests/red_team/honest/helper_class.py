# relu correct: its kernel is launched by a helper class with a dataclass of settings
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


from dataclasses import dataclass, field


@dataclass(frozen=True)
class Settings:
    block: int = 1024
    warps: int = 4
    options: dict = field(default_factory=dict)


class Op:
    def __init__(self, settings=Settings()):
        self.settings = settings

    def grid(self, n):
        return lambda META: (triton.cdiv(n, META["BLOCK"]),)

    def __call__(self, x):
        o = torch.empty_like(x, memory_format=torch.preserve_format)
        n = x.numel()
        relu_kernel[self.grid(n)](x, o, n, BLOCK=self.settings.block, num_warps=self.settings.warps, **self.settings.options)
        return o


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.op = Op()

    def forward(self, x):
        return self.op(x)
