# own/row_total correct coverage>0.75: configurations that differ in a number that the kernel takes at run time, and in their hooks
import torch
import torch.nn as nn
import triton
import triton.language as tl


def zero(args):
    args["y"].zero_()


@triton.autotune(
    configs=[
        triton.Config({"SPLIT": 1, "BLOCK": 1024}),
        triton.Config({"SPLIT": 4, "BLOCK": 1024}, pre_hook=zero),
        triton.Config({"SPLIT": 8, "BLOCK": 512}, pre_hook=zero),
    ],
    key=["cols"],
)
@triton.jit
def row_total(x, y, cols, SPLIT, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    total = 0.0
    for start in range(part * BLOCK, cols, SPLIT * BLOCK):
        o = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x + row * cols + o, mask=o < cols, other=0.0))
    if SPLIT == 1:
        tl.store(y + row, total)
    else:
        tl.atomic_add(y + row, total)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        row_total[lambda meta: (x.shape[0], meta["SPLIT"])](x, y, x.shape[1])
        return y
