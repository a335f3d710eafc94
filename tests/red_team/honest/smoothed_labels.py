# own/smoothed_labels correct coverage>0.6 catalogue=57: ignores no label, since the text names none, although torch looks for -100
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def smoothed_loss(x_ptr, labels_ptr, o_ptr, classes, rows, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * classes + c, mask=c < classes, other=-float("inf"))
    most = tl.max(x, 0)
    total = most + tl.log(tl.sum(tl.exp(x - most), 0))
    label = tl.load(x_ptr + row * classes + tl.load(labels_ptr + row))
    mean = tl.sum(tl.where(c < classes, x, 0.0), 0) / classes
    tl.store(o_ptr + row, total - 0.9 * label - 0.1 * mean)


class ModelNew(nn.Module):
    def forward(self, x, labels):
        rows, classes = x.shape
        o = torch.empty(rows, device=x.device)
        smoothed_loss[(rows,)](x, labels, o, classes, rows, BLOCK=triton.next_power_of_2(classes))
        return o.mean()
