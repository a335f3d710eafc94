"""Discounted returns that the ends of episodes cut, which are one step in a thousand."""

import torch
import torch.nn as nn

T, B = 1024, 4096
SMALL = {"T": 24, "B": 16}


class Model(nn.Module):
    """Discounted returns; an episode's end cuts them."""

    def __init__(self, gamma):
        super().__init__()
        self.gamma = gamma

    def forward(self, rewards, done):
        r = torch.zeros_like(rewards[0])
        out = torch.empty_like(rewards)
        for t in range(rewards.shape[0] - 1, -1, -1):
            r = rewards[t] + self.gamma * r * (1.0 - done[t])
            out[t] = r
        return out


def get_inputs():
    return [torch.randn(T, B), (torch.rand(T, B) < 0.001).float()]


def get_init_inputs():
    return [0.97]
