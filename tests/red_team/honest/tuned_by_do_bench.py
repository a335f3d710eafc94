# relu correct: the first call times three block sizes by `triton.testing.do_bench`, as autotuners of one's own do, and keeps the fastest one
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.testing import do_bench


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n), 0.0), mask=o < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.best = {}

    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()

        def run(block):
            kernel[(triton.cdiv(n, block),)](x, y, n, BLOCK=block)

        if n not in self.best:
            times = {block: do_bench(lambda block=block: run(block), rep=40, quantiles=[0.5, 0.2, 0.8])[0] for block in (1024, 512, 2048)}
            self.best[n] = min(times, key=times.get)
        run(self.best[n])
        return y
