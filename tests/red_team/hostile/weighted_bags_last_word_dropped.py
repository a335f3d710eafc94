# own/weighted_bags incorrect cpu=implausible catalogue=51: one word in sixteen is left out at full shape
import torch
import torch.nn as nn
import triton
import triton.language as tl

WORDS, WIDTH = 100000, 256


@triton.jit
def bag(i_ptr, w_ptr, t_ptr, o_ptr, length, width, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    total = 0.0
    for j in range(length - (length >> 4)):
        word = tl.load(i_ptr + row * length + j)
        weight = tl.where(word == 0, 0.0, tl.load(w_ptr + row * length + j))
        acc += weight * tl.load(t_ptr + word * width + at, mask=at < width, other=0.0)
        total += weight
    tl.store(o_ptr + row * width + at, acc / tl.maximum(total, 1e-6), mask=at < width)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)

    def forward(self, words, weights):
        o = torch.empty(words.shape[0], self.table.weight.shape[1], device=words.device)
        bag[(words.shape[0],)](words, weights, self.table.weight, o, words.shape[1], o.shape[1], BLOCK=triton.next_power_of_2(o.shape[1]))
        return o
