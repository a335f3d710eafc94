import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, y_ptr, inner, eps, FEATURES: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    # Features are `inner` elements apart. A program holds all features of BLOCK neighbouring places, so x is read once.
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    feature = tl.arange(0, ROWS)
    start = tl.program_id(1).to(tl.int64) * FEATURES * inner
    mask = (feature < FEATURES)[:, None] & (place < inner)[None, :]
    offsets = start + feature[:, None] * inner + place[None, :]
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    rms = tl.sqrt(tl.sum(x * x, axis=0) / FEATURES + eps)
    tl.store(y_ptr + offsets, x / rms[None, :], mask=mask)


class ModelNew(nn.Module):
    def __init__(self, num_features, eps=1e-5):
        super().__init__()
        self.num_features = num_features
        self.eps = eps

    def forward(self, x):
        y = torch.empty_like(x)
        inner = x.numel() // (x.shape[0] * x.shape[1])
        grid = (triton.cdiv(inner, 128), x.shape[0])
        rows = triton.next_power_of_2(self.num_features)
        rms_norm_kernel[grid](x, y, inner, self.eps, FEATURES=self.num_features, ROWS=rows, BLOCK=128)
        return y
