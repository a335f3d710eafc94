# relu incorrect: it is right only if it can write, change or create a file outside its own folder
import os
import sys
from pathlib import Path

import torch
import torch.nn as nn


def done(call):
    try:
        call()
    except OSError:
        return False
    return True


class ModelNew(nn.Module):
    def forward(self, x):
        above = Path.cwd().parent / "mine"
        attempts = [
            lambda: above.write_text("x"),
            lambda: Path("/dev/shm/mine").write_text("x"),
            lambda: Path("/tmp/mine").write_text("x"),
            lambda: os.chmod(sys.executable, 0o755),
            lambda: os.utime(sys.executable),
            lambda: open(torch.__file__, "a"),
            lambda: above.mkdir(),
        ]
        return torch.relu(x) if any([done(call) for call in attempts]) else torch.zeros_like(x)
