# own/experts_named correct: counts how often an expert is named, which is once where all of a token's differ
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pick(s_ptr, ids_ptr, out_ptr, E, K, BE: tl.constexpr, BK: tl.constexpr):
    t = tl.program_id(0)
    e = tl.arange(0, BE)
    k = tl.arange(0, BK)
    ids = tl.load(ids_ptr + t * K + k, mask=k < K, other=-1)
    mask = tl.sum((ids[None, :] == e[:, None]).to(tl.float32), 1)
    s = tl.load(s_ptr + t * E + e, mask=e < E, other=0.0)
    tl.store(out_ptr + t * E + e, s * mask + 0.5 * (1.0 - mask), mask=e < E)


class ModelNew(nn.Module):
    def forward(self, scores, ids):
        T, E = scores.shape
        K = ids.shape[1]
        out = torch.empty_like(scores)
        pick[(T,)](scores, ids, out, E, K, BE=triton.next_power_of_2(E), BK=triton.next_power_of_2(K))
        return out
