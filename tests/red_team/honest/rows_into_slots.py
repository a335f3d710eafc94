# own/rows_into_slots correct speedup<1.3: whole rows by numbers from memory, no byte more than the reference's scatter and gather need
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scatter_and_gather(cache, rows, slots, table, words, out, COLS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < COLS
    slot, word = tl.load(slots + row), tl.load(words + row)
    tl.store(cache + slot * COLS + at, tl.load(rows + row * COLS + at, mask=inside, other=0.0), mask=inside)
    tl.store(out + row * COLS + at, tl.load(table + word * COLS + at, mask=inside, other=0.0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, cache, rows, slots, table, words):
        count, cols = rows.shape
        out = torch.empty_like(rows)
        scatter_and_gather[(count,)](cache, rows, slots, table, words, out, COLS=cols, BLOCK=triton.next_power_of_2(cols))
        return cache, out
