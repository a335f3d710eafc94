"""Moves a candidate's module to the GPU, as whoever runs it does by `.to(device)`: its parameters and buffers, and what its own
code moves besides. Example: a module that keeps tensors in a list overrides `_apply`, which `.to` calls."""

from __future__ import annotations

from torch import nn

from rlkernel.evaluator.trace.devices import CUDA
from rlkernel.evaluator.trace.recorder import Recorder


def to_gpu(model: nn.Module, recorder: Recorder) -> None:
    """Let the parameters and buffers of `model` claim to be on the GPU, and run what its own code does to move others. May raise
    what that raises."""
    # By nn.Module's own methods: a candidate may have attributes of their names.
    for tensor in (*nn.Module.parameters(model), *nn.Module.buffers(model)):
        recorder.devices.move(tensor, CUDA)
    if type(model).to is nn.Module.to and all(type(module)._apply is nn.Module._apply for module in nn.Module.modules(model)):
        return
    recorder.devices.arriving = True
    model.to(CUDA)
    recorder.devices.arriving = False
