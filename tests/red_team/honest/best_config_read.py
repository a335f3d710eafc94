# own/row_total correct: the second kernel adds as many parts as the configuration that the first one's autotuner has chosen
import torch
import torch.nn as nn
import triton
import triton.language as tl

MOST = 16
CONFIGS = [triton.Config({"SPLIT": split, "BLOCK": block}) for split, block in ((2, 1024), (8, 512), (16, 256))]


@triton.autotune(configs=CONFIGS, key=["cols"])
@triton.jit
def part(x, parts, cols, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    row, number = tl.program_id(0), tl.program_id(1)
    total = 0.0
    for start in range(number * BLOCK, cols, SPLIT * BLOCK):
        o = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x + row * cols + o, mask=o < cols, other=0.0))
    tl.store(parts + row * SPLIT + number, total)


@triton.jit
def add(parts, y, SPLIT: tl.constexpr):
    row = tl.program_id(0)
    tl.store(y + row, tl.sum(tl.load(parts + row * SPLIT + tl.arange(0, SPLIT))))


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        parts = torch.empty(rows * MOST, device=x.device)
        y = torch.empty(rows, device=x.device)
        part[lambda meta: (rows, meta["SPLIT"])](x, parts, cols)
        add[(rows,)](parts, y, SPLIT=part.best_config.kwargs["SPLIT"])
        return y
