"""A softmax over each of the segments that a row of bounds leaves, whose lengths chance decides."""

import torch
import torch.nn as nn

SEGMENTS, COUNT = 1024, 16384
SMALL = {"SEGMENTS": 8, "COUNT": 96}


class Model(nn.Module):
    def forward(self, x, bounds):
        lengths = bounds[1:] - bounds[:-1]
        places = torch.arange(lengths.shape[0], device=x.device)
        segment = torch.repeat_interleave(places, lengths, output_size=x.shape[0])
        most = torch.full((lengths.shape[0],), float("-inf"), device=x.device).scatter_reduce(0, segment, x, "amax")
        found = torch.exp(x - most[segment])
        return found / torch.zeros_like(most).index_add(0, segment, found)[segment]


def get_inputs():
    cuts = torch.sort(torch.randperm(COUNT - 1)[: SEGMENTS - 1] + 1).values
    return [torch.randn(COUNT), torch.cat([torch.zeros(1, dtype=torch.long), cuts, torch.full((1,), COUNT)])]


def get_init_inputs():
    return []
