# relu correct: Module.to by swapping tensors; set_ of one tensor to another
import torch
import torch.nn as nn
import triton
import triton.language as tl

torch.__future__.set_swap_module_params_on_conversion(True)


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4).to(torch.bfloat16)
        a, b = torch.zeros(3), torch.ones(2)
        torch.utils.swap_tensors(a, b)
        self.register_buffer("a", a)

    def forward(self, x):
        assert self.fc.weight.dtype == torch.bfloat16 and self.a.shape == (2,)
        o = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        y = torch.empty(0, device=x.device)
        y.set_(o)
        return y
