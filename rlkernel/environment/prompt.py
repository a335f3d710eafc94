# ruff: noqa: E501 (the message is prose, one line per point)
"""The prompt, which is the first user message: the reference, what to write, and (in full) how it is judged."""

from __future__ import annotations

import re

from rlkernel.reference_text import prompt_source
from rlkernel.types import Problem

SHORT = """Rewrite this Model as ModelNew with Triton kernels.
{reference}
Write a short plan, then one fenced python block.
"""

FULL = """You write fast GPU kernels in Triton. Here is a PyTorch reference:

{reference}

Write `ModelNew`, a replacement for `Model` that returns the same outputs in less time on the GPU.

Answer with a short plan (which operations you fuse, and why that saves time), then exactly one fenced python block that holds a complete file: imports, `@triton.jit` kernels, and `class ModelNew(nn.Module)`.

Interface
- `ModelNew` takes the constructor arguments of `Model`; `forward` takes the same inputs and returns outputs of the same structure, shapes and dtypes.
- Create the same parameters under the same names and in the same order as `Model`, so that both get the same weights.
- Do not write `get_inputs` or test code. Import nothing but torch, triton and the standard library's math.

How it is judged
- `forward` is recorded once without data and the recording is replayed on fresh inputs. Host code must not read tensor values (`.item()`, `.tolist()`, `if x.sum() > 0`), and must do the same work on every call and in train and eval mode.
- At least one Triton kernel must compute what is returned. Kernels whose result is not used count as none. PyTorch operators are allowed, but the share of device time spent in your kernels (coverage) is reported and rewarded.
- Results are compared with a reference of higher precision at several input scales: keep float32 work in float32, mask the last block, and do not change the inputs in place.
- Time is the device time of one `forward` against the reference's. Memory traffic is the usual limit: read every input once, write every output once, keep intermediate values in registers.
- Kernels that read or write out of bounds, do not compile, or run forever score nothing.

After your answer you are told the status, the error, the speedup and the costliest steps, and may improve the file.
"""


def prompt_text(problem: Problem, template: str = SHORT) -> str:
    """The template with the reference in a fence that the reference's text cannot close.

    Raises BrokenReference for a file that does not parse.
    """
    source = prompt_source(problem.source, name=problem.name)
    longest = max((len(run) for run in re.findall(r"`+", source)), default=0)
    fence = "`" * max(3, longest + 1)
    return template.replace("{reference}", f"{fence}python\n{source}{fence}")
