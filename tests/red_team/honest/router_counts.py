# own/router_counts correct coverage<0.6: a softmax in Triton, and torch counts the tokens of each expert, of as many as are named
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    value = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * n + at, value / tl.sum(value, 0), mask=at < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(256, 64, bias=False)

    def forward(self, x):
        logits = self.gate(x)
        scores = torch.empty_like(logits)
        softmax[(logits.shape[0],)](logits, scores, logits.shape[1], BLOCK=64)
        weights, experts = torch.topk(scores, 4, dim=-1)
        counts = torch.bincount(experts.flatten(), minlength=64)
        return weights / weights.sum(-1, keepdim=True), counts
