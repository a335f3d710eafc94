# relu correct: asks for devices in every way that tutorials do
import torch
import torch.nn as nn
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        assert x.is_cuda and x.device.type == "cuda" and x.device.index == 0 and not x.is_cpu
        assert x.device == torch.device("cuda:0") == torch.device("cuda", 0) == torch.device("cuda", torch.cuda.current_device())
        assert x.device == DEVICE and torch.device("cuda").type == "cuda" and torch.device("cuda").index is None
        assert triton.runtime.driver.active.get_current_device() == 0 and x.get_device() == 0 and str(x.device) == "cuda:0"
        assert torch.device("cpu").type == "cpu" and torch.empty(1).device == torch.device("cpu") and torch.empty(1).get_device() == -1
        with torch.cuda.device(x.device), torch.cuda.device_of(x), torch.device("cuda"):
            o = torch.empty(x.shape, dtype=x.dtype)
            assert o.device == x.device
        relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o.to(x.device)
