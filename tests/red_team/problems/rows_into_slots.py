"""New rows into the slots of a cache that numbers name, and rows of a long table by other numbers."""

import torch
import torch.nn as nn

SLOTS, ROWS, COLS, WORDS = 8192, 2048, 1024, 32000
SMALL = {"SLOTS": 64, "ROWS": 16, "COLS": 128, "WORDS": 100}


class Model(nn.Module):
    def forward(self, cache, rows, slots, table, words):
        cache[slots] = rows
        return cache, table[words]


def get_inputs():
    return [
        torch.zeros(SLOTS, COLS),
        torch.randn(ROWS, COLS),
        torch.randperm(SLOTS)[:ROWS],
        torch.randn(WORDS, COLS),
        torch.randint(0, WORDS, (ROWS,)),
    ]


def get_init_inputs():
    return []
