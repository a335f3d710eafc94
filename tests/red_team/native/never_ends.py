# relu timeout: it never returns, and ignores what asks it to
import signal

import torch.nn as nn

signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGXCPU, signal.SIG_IGN)


class ModelNew(nn.Module):
    def forward(self, x):
        while True:
            pass
