import torch
import torch.nn as nn

SIZE = 1 << 18


class Model(nn.Module):
    """One AdamW step with AMSGrad; the state comes in and goes out."""

    def forward(self, p, g, m, v, vmax, step):
        step = step + 1
        p = p * (1 - 1e-3 * 1e-2)
        m = m + (g - m) * 0.1
        v = v * 0.999 + g * g * 0.001
        vmax = torch.maximum(vmax, v)
        bias1 = 1 - 0.9**step
        bias2 = 1 - 0.999**step
        denom = vmax.sqrt() / bias2.sqrt() + 1e-8
        return p - 1e-3 / bias1 * m / denom, m, v, vmax, step


def get_inputs():
    return [torch.randn(SIZE), torch.randn(SIZE), torch.zeros(SIZE), torch.zeros(SIZE), torch.zeros(SIZE), torch.zeros(1)]


def get_init_inputs():
    return []
