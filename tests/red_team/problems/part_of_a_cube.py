"""The sum of a part of a cube, whose last plane and last column are arguments."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, plane: int, row: int, column: int) -> torch.Tensor:
        return x[11 : plane + 1, : row + 1, 1 : column + 1].sum()


def get_inputs() -> list:
    return [torch.randint(1, 11, (500, 500, 500)), 498, 499, 489]


def get_init_inputs() -> list:
    return []
