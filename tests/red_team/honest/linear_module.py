# level3/router correct coverage<0.9: nn.Linear built by the module, dict output, softmax kernel with a second output
import torch
import torch.nn as nn
import triton
import triton.language as tl

DIM = 512
EXPERTS = 64

@triton.jit
def route(x_ptr, p_ptr, c_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + i, mask=i < cols, other=-float("inf"))
    x = tl.softmax(x)
    tl.store(p_ptr + row * cols + i, x, mask=i < cols)
    tl.store(c_ptr + row, tl.max(x, axis=0))

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(DIM, EXPERTS)

    def forward(self, x):
        logits = self.gate(x)
        p = torch.empty_like(logits)
        c = torch.empty(logits.shape[0], device=x.device)
        route[(logits.shape[0],)](logits, p, c, logits.shape[1], BLOCK=triton.next_power_of_2(logits.shape[1]))
        return {"probability": p, "confidence": c}
