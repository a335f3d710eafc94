# level1/group_norm correct: statistics by one kernel, their application by another
import torch
import torch.nn as nn
import triton
import triton.language as tl

CHANNELS = 128


@triton.jit
def statistics(x_ptr, m_ptr, s_ptr, size, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    base = pid.to(tl.int64) * size
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + base + i, mask=i < size, other=0.0)
    mean = tl.sum(acc, axis=0) / size
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        d = tl.where(i < size, tl.load(x_ptr + base + i, mask=i < size, other=0.0) - mean, 0.0)
        acc += d * d
    tl.store(m_ptr + pid, mean)
    tl.store(s_ptr + pid, tl.rsqrt(tl.sum(acc, axis=0) / size + 1e-5))


@triton.jit
def apply(x_ptr, m_ptr, s_ptr, w_ptr, b_ptr, y_ptr, length, channels, per_group, BLOCK: tl.constexpr):
    line = tl.program_id(0)
    group, channel = line // per_group, line % channels
    scale = tl.load(s_ptr + group) * tl.load(w_ptr + channel)
    shift = tl.load(b_ptr + channel) - tl.load(m_ptr + group) * scale
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + line * length + i, mask=i < length)
    tl.store(y_ptr + line * length + i, x * scale + shift, mask=i < length)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(CHANNELS))
        self.bias = nn.Parameter(torch.randn(CHANNELS))

    def forward(self, x):
        batch, channels, length = x.shape
        per_group = channels // 4
        mean = x.new_empty(batch * 4)
        scale = torch.empty_like(mean)
        y = torch.empty_like(x)
        statistics[(batch * 4,)](x, mean, scale, per_group * length, BLOCK=4096, num_warps=8)
        grid = (batch * channels, triton.cdiv(length, 1024))
        apply[grid](x, mean, scale, self.weight, self.bias, y, length, channels, per_group, BLOCK=1024)
        return y
