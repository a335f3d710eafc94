# relu incorrect: it works in place, which the reference does not
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.relu_()
