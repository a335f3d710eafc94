# level1/matmul correct: the first call times four configurations with events, as engineers do who know no autotuner, and keeps the fastest one
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        at = k + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * K + at, mask=(rows[:, None] < M) & (at < K), other=0.0)
        y = tl.load(b + at[:, None] * N + cols, mask=(at[:, None] < K) & (cols < N), other=0.0)
        acc += tl.dot(x, y, input_precision="ieee")
    tl.store(c + rows[:, None] * N + cols, acc, mask=(rows[:, None] < M) & (cols < N))


class ModelNew(nn.Module):
    CONFIGS = ((32, 32, 32), (64, 64, 32), (64, 32, 32), (32, 64, 32))

    def __init__(self):
        super().__init__()
        self.best = None

    def run(self, a, b, c, config):
        (m, k), n = a.shape, b.shape[1]
        bm, bn, bk = config
        matmul[(triton.cdiv(m, bm), triton.cdiv(n, bn))](a, b, c, m, n, k, BM=bm, BN=bn, BK=bk)

    def timed(self, a, b, c, config):
        self.run(a, b, c, config)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        for _ in range(5):
            self.run(a, b, c, config)
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) / 5

    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1], device=a.device, dtype=a.dtype)
        if self.best is None:
            self.best = min(self.CONFIGS, key=lambda config: self.timed(a, b, c, config))
        self.run(a, b, c, self.best)
        return c
