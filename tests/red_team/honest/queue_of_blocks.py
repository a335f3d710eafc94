# relu correct: blocks are handed out by a counter that a kernel sets to zero; without that kernel the rest addresses anything
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def begin(counter):
    tl.store(counter, 0)


@triton.jit
def hand_out(counter, order):
    place = tl.atomic_add(counter, 1)
    tl.store(order + place, tl.program_id(0))


@triton.jit
def relu(order, x, o, n, BLOCK: tl.constexpr):
    i = tl.load(order + tl.program_id(0)) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        blocks = triton.cdiv(x.numel(), 1024)
        counter = torch.empty(1, dtype=torch.int32, device=x.device)
        order = torch.empty(blocks, dtype=torch.int32, device=x.device)
        o = torch.empty_like(x)
        begin[(1,)](counter)
        hand_out[(blocks,)](counter, order)
        relu[(blocks,)](order, x, o, x.numel(), BLOCK=1024)
        return o
