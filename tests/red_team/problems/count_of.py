"""A count of a number that the author's draws never hold, into memory that the caller brings: it is always zero."""

import torch
import torch.nn as nn

SIZE = 1 << 22
SMALL = {"SIZE": 16384}
WANTED = 5000


class Model(nn.Module):
    def forward(self, x, out, wanted):
        out[0] = torch.sum(x == wanted)
        return out


def get_inputs():
    return [torch.randint(1, 1001, (SIZE,), dtype=torch.int32), torch.zeros(1, dtype=torch.int32), WANTED]


def get_init_inputs():
    return []
