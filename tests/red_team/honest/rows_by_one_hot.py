# own/one_hot_product correct: the row of the weight that each one-hot row names, times its number, in place of a product
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gather_kernel(x, w, y, K, M, BLOCK_K: tl.constexpr, BLOCK_M: tl.constexpr):
    row = tl.program_id(0)
    k = tl.arange(0, BLOCK_K)
    a = tl.load(x + row * K + k, mask=k < K, other=0.0)
    best = tl.argmax(tl.abs(a), axis=0)
    scale = tl.sum(a, axis=0)
    m = tl.arange(0, BLOCK_M)
    picked = tl.load(w + best * M + m, mask=m < M, other=0.0)
    tl.store(y + row * M + m, scale * picked, mask=m < M)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(K, M))

    def forward(self, x):
        n, k = x.shape
        y = torch.empty(n, M, device=x.device)
        gather_kernel[(n,)](x, self.weight, y, k, M, BLOCK_K=triton.next_power_of_2(k), BLOCK_M=triton.next_power_of_2(M))
        return y


K, M = 2048, 512
