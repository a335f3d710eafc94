import torch
import torch.nn as nn

ROWS, COLS, KINDS = 8192, 128, 400
SMALL = {"ROWS": 96, "COLS": 32, "KINDS": 4}


class Model(nn.Module):
    """Each row less the mean of the rows of its kind; which kinds there are, and how many, `torch.unique` finds."""

    def __init__(self, most):
        super().__init__()
        self.most = most  # kinds are below it

    def forward(self, x, kind):
        found, place, count = torch.unique(kind, return_inverse=True, return_counts=True)
        total = torch.zeros(found.numel(), x.shape[1], device=x.device, dtype=x.dtype).index_add_(0, place, x)
        return x - (total / count.unsqueeze(1))[place]


def get_inputs():
    return [torch.randn(ROWS, COLS) + 1.0, 3 * torch.randint(0, KINDS, (ROWS,))]


def get_init_inputs():
    return [3 * KINDS]
