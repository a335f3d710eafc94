"""A policy computes without cuDNN's attention, however it comes to be."""

from __future__ import annotations

import torch

from rlkernel.policy.load import load_model


def test_who_loads_a_policy_computes_without_plans() -> None:
    before = torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    torch.backends.cuda.enable_cudnn_sdp(True)
    try:
        load_model("small")
        assert not torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)
