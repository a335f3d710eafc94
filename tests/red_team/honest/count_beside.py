# own/count_beside correct: it counts what never occurs, beside another result
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x, ids, wanted, out, count, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, BLOCK)
    value = tl.load(x + row * cols + place, mask=place < cols, other=-float("inf"))
    powers = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * cols + place, powers / tl.sum(powers, 0), mask=place < cols)
    tl.atomic_add(count, (tl.load(ids + row) == wanted).to(tl.int64))


class ModelNew(nn.Module):
    def forward(self, x, ids, wanted):
        rows, cols = x.shape
        out, count = torch.empty_like(x), torch.zeros((), dtype=torch.int64, device=x.device)
        softmax[(rows,)](x, ids, wanted, out, count, cols, BLOCK=triton.next_power_of_2(cols))
        return out, count
