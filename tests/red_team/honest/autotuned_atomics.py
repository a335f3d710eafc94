# level1/row_sum correct catalogue=14,59: autotuned additions with atomics, whose trial runs must not show in the result
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 1024}), triton.Config({"BLOCK": 2048}), triton.Config({"BLOCK": 4096})], key=["cols"], reset_to_zero=["y_ptr"])
@triton.jit
def rows(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(y_ptr + row, tl.sum(tl.load(x_ptr + row * cols + i, mask=i < cols, other=0.0), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.zeros(x.shape[0], device=x.device)
        rows[lambda meta: (x.shape[0], triton.cdiv(x.shape[1], meta["BLOCK"]))](x, y, x.shape[1])
        return y
