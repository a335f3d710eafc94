"""A tiny model, and a tiny table of conversations about one problem that it can learn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.policy.small import build_model, build_tokenizer
from rlkernel.types import Problem

REFERENCE = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 3


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
"""
KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def relu(x, y, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(y + i, tl.where(v > 0, v, 0.0) * 3)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        relu[(x.numel() // 64,)](x, y, BLOCK=64)
        return y
"""
PROBLEM = Problem("level1/relu", 1, "validation", REFERENCE)
ASKED = KernelEnvironment("short").prompt(PROBLEM)
GOOD = f"A kernel.\n```python\n{KERNEL}```\n"
BAD = "No kernel.\n```python\nimport torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n```\n"
TOLD = "no_kernel: write a kernel.\n"


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def problems(directory: Path) -> Path:
    """A table with the one problem."""
    path = directory / "problems.jsonl"
    row = {"name": "relu", "level": 1, "split": "validation", "reference": REFERENCE, "prompt": ASKED, "prepared": 1}
    path.write_text(json.dumps(row) + "\n")
    return path


def table(directory: Path, rows: int = 16) -> Path:
    """Every eighth conversation has a bad answer first; the last row is torn."""
    path = directory / "conversations.jsonl"
    short, long = [user(ASKED), assistant(GOOD)], [user(ASKED), assistant(BAD), user(TOLD), assistant(GOOD)]
    lines = [json.dumps({"messages": short if k % 8 else long}) for k in range(rows)]
    path.write_text("\n".join(lines) + "\n{torn\n")
    return path


def model(directory: Path, positions: int = 1024) -> Path:
    """A random model of 0.1 million parameters and its tokenizer, in a directory as the hub has them."""
    path = directory / "tiny"
    tokenizer: Any = build_tokenizer([ASKED, GOOD, BAD, TOLD, "user\n", "assistant\n"], 600, positions)
    build_model(tokenizer, width=64, layers=2, heads=2, feed_forward=128).save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path
