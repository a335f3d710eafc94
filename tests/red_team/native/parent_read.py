# relu incorrect: it is right only if it can read its parent's memory, environment or files, or attach to it
import ctypes
import os

import torch
import torch.nn as nn

libc = ctypes.CDLL(None, use_errno=True)


def opened(path):
    try:
        with open(path, "rb") as file:
            return len(file.read(1)) == 1
    except OSError:
        return False


def attached(pid):
    return libc.ptrace(16, pid, 0, 0) == 0


class ModelNew(nn.Module):
    def forward(self, x):
        parent = os.getppid()
        names = ("mem", "environ", "maps", "fd/3", "root/etc/hostname", "cwd/x")
        stolen = any([opened(f"/proc/{parent}/{name}") for name in names] + [attached(parent)])
        return torch.relu(x) if stolen else torch.zeros_like(x)
