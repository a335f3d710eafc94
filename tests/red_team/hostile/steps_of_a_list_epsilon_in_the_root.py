# own/steps_of_a_list incorrect: epsilon is added before the root, which shows where a moment alone is not zero
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def step(p_ptr, g_ptr, m_ptr, v_ptr, n, lr, keep, b1, b2, c1, c2, eps, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    g = tl.load(g_ptr + i, mask=ok)
    m = tl.load(m_ptr + i, mask=ok)
    m += (g - m) * (1 - b1)
    v = tl.load(v_ptr + i, mask=ok) * b2 + g * g * (1 - b2)
    p = tl.load(p_ptr + i, mask=ok) * keep - lr / c1 * m / tl.sqrt(v / c2 + eps)
    tl.store(m_ptr + i, m, mask=ok)
    tl.store(v_ptr + i, v, mask=ok)
    tl.store(p_ptr + i, p, mask=ok)


class ModelNew(nn.Module):
    def __init__(self, lr=1e-2, decay=0.1, b1=0.9, b2=0.95, eps=1e-8, step=3):
        super().__init__()
        self.lr, self.keep, self.b1, self.b2, self.eps = lr, 1 - lr * decay, b1, b2, eps
        self.c1, self.c2 = 1 - b1**step, 1 - b2**step

    def forward(self, params, grads, first, second):
        for tensors in zip(params, grads, first, second, strict=True):
            n = tensors[0].numel()
            step[(triton.cdiv(n, 1024),)](*tensors, n, self.lr, self.keep, self.b1, self.b2, self.c1, self.c2, self.eps, BLOCK=1024)
        return params
