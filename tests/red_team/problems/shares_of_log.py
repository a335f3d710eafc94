"""A divergence of probabilities of which some are zero, though none that is drawn."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, COLS = 4096, 4096
SMALL = {"ROWS": 12, "COLS": 60}


class Model(nn.Module):
    def forward(self, logs, shares):
        return F.kl_div(logs, shares, reduction="none").sum(1)


def get_inputs():
    return [torch.log_softmax(torch.randn(ROWS, COLS), dim=1), torch.softmax(torch.randn(ROWS, COLS), dim=1)]


def get_init_inputs():
    return []
