# level2/chain_bias_silu_scale correct: a whole file in the style of a compiler's output, with its checks, memory and streams
import torch
import torch.nn as nn
import triton
import triton.language as tl
from torch._C import _cuda_getCurrentRawStream as get_raw_stream
from torch._inductor.runtime import triton_helpers
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math

assert_size_stride = torch._C._dynamo.guards.assert_size_stride
empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda
reinterpret_tensor = torch._C._dynamo.guards._reinterpret_tensor
triton_helpers.set_driver_to_gpu()
COLS = 4096


@triton.jit
def triton_poi_fused_add_mul_silu_0(in_ptr0, in_ptr1, out_ptr0, xnumel, cols, XBLOCK: tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x1 = xindex % cols
    tmp0 = tl.load(in_ptr0 + xindex, xmask)
    tmp1 = tl.load(in_ptr1 + x1, xmask, eviction_policy="evict_last")
    tmp2 = tmp0 + tmp1
    tmp3 = tl.sigmoid(tmp2)
    tmp4 = tmp2 * tmp3
    tmp5 = triton_helpers.maximum(tl_math.abs(tmp4), -libdevice.rint(tmp4 * 0.0)) * 0.0 + tmp4 * 2.0
    tl.store(out_ptr0 + xindex, tmp5, xmask)


def call(args):
    arg0_1, arg1_1 = args
    args.clear()
    rows, cols = arg0_1.shape
    assert_size_stride(arg0_1, (rows, cols), (cols, 1))
    assert_size_stride(arg1_1, (cols,), (1,))
    with torch.cuda._DeviceGuard(0):
        torch.cuda.set_device(0)
        buf0 = empty_strided_cuda((rows * cols,), (1,), torch.float32)
        stream0 = get_raw_stream(0)
        del stream0
        triton_poi_fused_add_mul_silu_0[(triton.cdiv(rows * cols, 1024),)](
            arg0_1, arg1_1, buf0, rows * cols, cols, XBLOCK=1024, num_warps=4, num_stages=1
        )
        del arg0_1, arg1_1
    return (reinterpret_tensor(buf0, (rows, cols), (cols, 1), 0),)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        return call([x, self.bias])[0]
