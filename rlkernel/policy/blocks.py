"""The blocks of a model, compiled for passes of many tokens: what lies between its matrix products becomes a few kernels.

A block is one layer of the model, with its attention and its feed-forward. All layers of a kind share one program, which takes
any number of tokens, so that a model of 40 layers is compiled once. Recomputation goes around a block and not through it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from transformers.modeling_layers import GradientCheckpointingLayer

PROGRAMS = 32
"""The most programs of one block: with gradients and without, recomputed or not, for the trained model and a reference."""


def compile_blocks(model: Any) -> int:
    """Let torch.compile replace the blocks of a model when they are first used. Returns their number. The weights keep their
    names.

    Sampling and training have threads of their own, and one compiles while the other computes. Whether a function is being
    traced is one flag of the whole process, at which a compiled block of the other thread would raise. So blocks do not ask.
    """
    torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, PROGRAMS)
    torch._dynamo.config.force_compile_during_fx_trace = True
    blocks = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
    for block in blocks:
        block.compile(dynamic=True)
    return len(blocks)


def keep_programs(directory: Path) -> None:
    """Keep what torch.compile and Triton make in a folder, where the next process finds it, unless the user names another."""
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(directory / "inductor"))
    os.environ.setdefault("TRITON_CACHE_DIR", str(directory / "triton"))
