"""Rows in the schemas of published data sets, written by hand."""

from __future__ import annotations

from typing import Any

SUM = """import torch
from torch import nn


class RowSum(nn.Module):
    def __init__(self, dim):
        super(RowSum, self).__init__()
        self.dim = dim

    def forward(self, x):
        return x.sum(self.dim) * 2.0


def get_inputs():
    return [torch.rand([4, 64])]


def get_init_inputs():
    return [[], {"dim": 1}]
"""
"""A reference as KernelBook has it: a class of its own name, and keywords among the arguments."""
ASKED = "Write Triton kernels for this module.\n```python\nclass RowSum: ...\n```\n"
"""A prompt whose text is not ours."""


def drkernel(k: int = 0, **changes: Any) -> dict[str, Any]:
    """Row k of a table like Dr. Kernel's; `changes` replace columns."""
    row = {
        "data_source": "cuda_llm",
        "prompt": [{"role": "user", "content": ASKED}],
        "ability": "kernel_optimization",
        "reward_model": {"ground_truth": SUM.replace("2.0", f"{k + 2}.0"), "style": "rule"},
        "extra_info": {"entry_point": "RowSum", "level": "1", "module_name": "RowSum", "ops": ["sum"], "uuid": f"{k:08d}-aa"},
    }
    return {**row, **changes}


def kernelbook(k: int = 0, **changes: Any) -> dict[str, Any]:
    """Row k of a table like KernelBook."""
    row = {"entry_point": "RowSum", "python_code": SUM, "triton_code": "...", "repo_name": "a/b", "uuid": k, "synthetic": False}
    return {**row, **changes}


def kernelbench(k: int = 0, **changes: Any) -> dict[str, Any]:
    """Row k of a table like KernelBench's."""
    code = SUM.replace("RowSum", "Model")
    return {"code": code, "level": 2, "name": f"{k}_Sum.py", "problem_id": k, **changes}
