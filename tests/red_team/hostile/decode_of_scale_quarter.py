# own/decode_attention incorrect catalogue=51: all sizes are arguments, and the scale is that of 16 channels in place of 128
import torch
import triton
import triton.language as tl


@triton.jit
def decode(q_ptr, k_ptr, v_ptr, o_ptr, N, D: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + row * D + d)
    best = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        n = start + tl.arange(0, BLOCK)
        k = tl.load(k_ptr + row * N * D + n[:, None] * D + d[None, :])
        v = tl.load(v_ptr + row * N * D + n[:, None] * D + d[None, :])
        s = tl.sum(q[None, :] * k, axis=1) * 0.25
        new = tl.maximum(best, tl.max(s, axis=0))
        p = tl.exp(s - new)
        scale = tl.exp(best - new)
        total = total * scale + tl.sum(p, axis=0)
        acc = acc * scale + tl.sum(p[:, None] * v, axis=0)
        best = new
    tl.store(o_ptr + row * D + d, acc / total)


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        o = torch.empty_like(q)
        decode[(q.shape[0] * q.shape[1],)](q, k, v, o, k.shape[2], D=q.shape[2], BLOCK=64)
        return o
