# relu correct: it leaves a child, a grandchild and a thread behind; none of them is there when answers are computed
import os
import threading
import time

import torch
import torch.nn as nn

if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(1000)
    time.sleep(1000)
threading.Thread(target=lambda: time.sleep(1000), daemon=True).start()


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)
