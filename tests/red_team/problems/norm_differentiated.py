"""What the weights and biases of a layer norm are to change by: sums over all rows, by autograd."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, COLS = 8192, 1024
SMALL = {"ROWS": 64, "COLS": 96}


class Model(nn.Module):
    def forward(self, x, weight, bias, slope):
        weight, bias = weight.detach().requires_grad_(True), bias.detach().requires_grad_(True)
        with torch.enable_grad():
            return torch.autograd.grad(F.layer_norm(x, (x.shape[1],), weight, bias), (weight, bias), slope)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(COLS), torch.randn(COLS), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
