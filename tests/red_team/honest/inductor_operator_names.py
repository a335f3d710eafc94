# relu correct: a compiler's output of an older version, which finds its view of memory among torch's operators
import torch
import torch.nn as nn
import triton
import triton.language as tl

empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda
reinterpret_tensor = torch.ops.inductor._reinterpret_tensor


@triton.jit
def triton_poi_fused_relu_0(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    tmp0 = tl.load(in_ptr0 + xindex, xmask)
    tl.store(out_ptr0 + xindex, tl.maximum(tmp0, 0.0), xmask)


class ModelNew(nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        buf0 = empty_strided_cuda((rows * cols,), (1,), torch.float32)
        triton_poi_fused_relu_0[(triton.cdiv(rows * cols, 1024),)](x, buf0, rows * cols, XBLOCK=1024)
        return reinterpret_tensor(buf0, (rows, cols), (cols, 1), 0)
