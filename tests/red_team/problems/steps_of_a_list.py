"""A step of AdamW for a list of parameters, in place."""

import torch
import torch.nn as nn

SHAPES = ((2048, 1024), (1024,), (1024, 3072), (7, 513))
SMALL = {"SHAPES": ((24, 16), (24,), (16, 40), (7, 33))}


class Model(nn.Module):
    def __init__(self, lr=1e-2, decay=0.1, b1=0.9, b2=0.95, eps=1e-8, step=3):
        super().__init__()
        self.hyper = (lr, decay, b1, b2, eps, step)

    def forward(self, params, grads, first, second):
        lr, decay, b1, b2, eps, step = self.hyper
        for p, g, m, v in zip(params, grads, first, second):
            p.mul_(1 - lr * decay)
            m.lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            den = (v / (1 - b2**step)).sqrt_().add_(eps)
            p.addcdiv_(m, den, value=-lr / (1 - b1**step))
        return params


def get_inputs():
    return [[torch.randn(s) for s in SHAPES], [torch.randn(s) for s in SHAPES], [torch.randn(s) * 0.1 for s in SHAPES], [torch.rand(s) * 0.1 for s in SHAPES]]
