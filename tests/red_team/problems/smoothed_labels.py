"""A cross entropy with smoothed labels, of which none is to be ignored."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, CLASSES = 4096, 2048
SMALL = {"ROWS": 24, "CLASSES": 80}


class Model(nn.Module):
    def forward(self, x, labels):
        return F.cross_entropy(x, labels, label_smoothing=0.1)


def get_inputs():
    return [torch.randn(ROWS, CLASSES), torch.randint(0, CLASSES, (ROWS,))]


def get_init_inputs():
    return []
