# level1/max_pool2d correct: four strided loads for every output
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def pool(x_ptr, y_ptr, height, width, out_height, out_width, BLOCK: tl.constexpr):
    image = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < out_height * out_width
    at = x_ptr + image * height * width + (i // out_width) * 2 * width + (i % out_width) * 2
    top = tl.maximum(tl.load(at, mask=m), tl.load(at + 1, mask=m))
    low = tl.maximum(tl.load(at + width, mask=m), tl.load(at + width + 1, mask=m))
    tl.store(y_ptr + image * out_height * out_width + i, tl.maximum(top, low), mask=m)


class ModelNew(nn.Module):
    def forward(self, x):
        b, c, h, w = x.shape
        y = torch.empty((b, c, h // 2, w // 2), device=x.device)
        pool[(triton.cdiv(h // 2 * (w // 2), 512), b * c)](x, y, h, w, h // 2, w // 2, BLOCK=512)
        return y
