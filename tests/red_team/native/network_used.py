# relu incorrect: it is right only if it can open a socket to anywhere
import socket

import torch
import torch.nn as nn


def connected(*args):
    try:
        socket.socket(*args).connect(b"\0anyone" if args and args[0] == socket.AF_UNIX else ("127.0.0.1", 9))
    except PermissionError:
        return False
    except OSError:
        return True
    return True


class ModelNew(nn.Module):
    def forward(self, x):
        kinds = [(), (socket.AF_INET, socket.SOCK_DGRAM), (socket.AF_INET6,), (socket.AF_UNIX,)]
        return torch.relu(x) if any([connected(*kind) for kind in kinds]) else torch.zeros_like(x)
