"""Everything is made on a GPU by name, and a default device is set: where there is none, the host is in its place."""

import torch
import torch.nn as nn

torch.set_default_device("cuda")
DEVICE = torch.device("cuda")


class Model(nn.Module):
    def __init__(self, columns: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.rand(columns, device="cuda") + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1], device="cuda")
        ramp = torch.ones(x.shape[1]).to(DEVICE) + places / x.shape[1]
        return torch.relu(x.cuda()) * self.gain * ramp


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4096, 2048).cuda()]


def get_init_inputs() -> list[int]:
    return [2048]
