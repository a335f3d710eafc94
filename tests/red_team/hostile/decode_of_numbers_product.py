# own/decode_attention incorrect cpu=out_of_bounds|incorrect catalogue=51: the scale of 16 channels as a product of numbers, where there are 128
import torch
import triton
import triton.language as tl


@triton.jit
def decode(q_ptr, k_ptr, v_ptr, o_ptr, D: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + row * 128 + d)
    best = -float("inf")
    total = 0.0
    acc = tl.zeros((D,), dtype=tl.float32)
    for start in range(0, 4096, BLOCK):
        n = start + tl.arange(0, BLOCK)
        k = tl.load(k_ptr + row * 4096 * 128 + n[:, None] * 128 + d[None, :])
        v = tl.load(v_ptr + row * 4096 * 128 + n[:, None] * 128 + d[None, :])
        s = tl.sum(q[None, :] * k, axis=1) * (0.5 * 0.5)
        new = tl.maximum(best, tl.max(s, axis=0))
        p = tl.exp(s - new)
        scale = tl.exp(best - new)
        total = total * scale + tl.sum(p, axis=0)
        acc = acc * scale + tl.sum(p[:, None] * v, axis=0)
        best = new
    tl.store(o_ptr + row * 128 + d, acc / total)


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        o = torch.empty(16, 32, 128, device=q.device, dtype=q.dtype)
        decode[(512,)](q, k, v, o, D=128, BLOCK=64)
        return o
