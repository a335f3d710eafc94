# relu runtime_error: it wants more memory than it may have
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return bytearray(1 << 42)
