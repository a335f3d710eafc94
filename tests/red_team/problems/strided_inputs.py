import torch
import torch.nn as nn

ROWS, COLS = 2048, 1024
SMALL = {"ROWS": 24, "COLS": 96}


class Model(nn.Module):
    """Every second column of a wider tensor, one number for each row, and windows of a signal that share memory."""

    def forward(self, x, row, windows):
        return torch.relu(torch.addcmul(row, x, windows, value=0.5))


def get_inputs():
    wide = torch.randn(ROWS, 2 * COLS)
    signal = torch.randn((ROWS - 1) * 16 + COLS)
    return [wide[:, 1::2], torch.randn(ROWS, 1).expand(ROWS, COLS), signal.unfold(0, COLS, 16)]


def get_init_inputs():
    return []
