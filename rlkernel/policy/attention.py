"""Which of torch's implementations of attention a policy computes with."""

from __future__ import annotations

import torch


def without_plans() -> None:
    """Leave cuDNN's attention out of those that torch chooses from, in this process. It makes a plan for each new shape, 5 ms of
    the host in a forward pass of one layer and 5 in a backward pass, and the rows of a policy have another length each time."""
    torch.backends.cuda.enable_cudnn_sdp(False)
