# relu correct: a kernel decorated as a compiler's output is, launched by .run with a stream
import torch
import torch.nn as nn
import triton
import triton.language as tl
from torch._C import _cuda_getCurrentRawStream as get_raw_stream
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.hints import DeviceProperties

empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cuda


@triton_heuristics.pointwise(
    size_hints={"x": 1048576},
    filename=__file__,
    triton_meta={
        "signature": {"in_ptr0": "*fp32", "out_ptr0": "*fp32", "xnumel": "i32", "XBLOCK": "constexpr"},
        "device": DeviceProperties(type="cuda", index=0, multi_processor_count=132, cc=90, major=9, regs_per_multiprocessor=65536,
                                   max_threads_per_multi_processor=2048, warp_size=32),
        "constants": {},
        "configs": [{}],
    },
    inductor_meta={"grid_type": "Grid1D", "autotune_hints": set(), "kernel_name": "triton_poi_fused_relu_0", "mutated_arg_names": [],
                   "no_x_dim": False, "num_load": 1, "num_reduction": 0},
    min_elem_per_thread=0,
)
@triton.jit
def triton_poi_fused_relu_0(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    tmp0 = tl.load(in_ptr0 + xindex, xmask)
    tmp1 = tl.full([1], 0, tl.int32)
    tmp2 = triton_helpers.maximum(tmp1, tmp0)
    tl.store(out_ptr0 + xindex, tmp2, xmask)


class ModelNew(nn.Module):
    def forward(self, x):
        out = empty_strided_cuda(tuple(x.shape), tuple(x.stride()), x.dtype)
        triton_poi_fused_relu_0.run(x, out, x.numel(), stream=get_raw_stream(0))
        return out
