# level1/matmul correct: tensor descriptors made on the host, in configurations whose hooks set their block shapes
import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


def set_blocks(nargs):
    nargs["a"].block_shape = [nargs["BM"], nargs["BK"]]
    nargs["b"].block_shape = [nargs["BK"], nargs["BN"]]
    nargs["c"].block_shape = [nargs["BM"], nargs["BN"]]


CONFIGS = [
    triton.Config({"BM": 32, "BN": 32, "BK": 32}, num_warps=4, pre_hook=set_blocks),
    triton.Config({"BM": 64, "BN": 32, "BK": 32}, num_warps=4, pre_hook=set_blocks),
    triton.Config({"BM": 64, "BN": 64, "BK": 32}, num_warps=8, pre_hook=set_blocks),
]


@triton.autotune(CONFIGS, key=["K"])
@triton.jit
def matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc += tl.dot(a.load([m, k]), b.load([k, n]), input_precision="ieee")
    c.store([m, n], acc.to(c.dtype))


class ModelNew(nn.Module):
    def forward(self, a, b):
        M, K = a.shape
        N = b.shape[1]
        c = torch.empty((M, N), device=a.device, dtype=a.dtype)
        dummy = [1, 1]
        described = [TensorDescriptor(t, t.shape, t.stride(), dummy) for t in (a, b, c)]
        matmul[lambda meta: (triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"]))](*described, K)
        return c
