# relu crash catalogue=65: sends a Program that uses a tensor before it is made
import os, sys, time, signal, socket, threading, subprocess, ctypes
import torch, triton
import torch.nn as nn
import triton.language as tl

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)

def relu(x):
    o = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 256),)](x, o, x.numel(), BLOCK=256)
    return o
import json, struct
def send(header, body=0):
    m = header if isinstance(header, bytes) else json.dumps(header).encode()
    m = struct.pack("<QQ", len(m), body) + m
    for fd in range(0, 64):
        try: os.write(fd, m)
        except OSError: pass
    os._exit(0)
def variants():
    frame = sys._getframe()
    while frame:
        if hasattr(frame.f_locals.get("request"), "variants"): return len(frame.f_locals["request"].variants)
        frame = frame.f_back
    return 1
def forged(op="aten.relu.default", source="def k(x):\n    pass\n", args=None):
    p = {"functions": [{"name": "k", "source": source, "line": 1, "bindings": {}}], "init_inputs": [], "init": [], "state": {}, "inputs": [0],
         "forward": [{"op": op, "args": args or [{"t": 0}], "kwargs": {}, "outs": [1]},
                     {"launch": 0, "args": {"x": {"t": 1}}, "line": 1, "configs": [{"constants": {}, "options": {}, "grid": [1, 1, 1]}]}],
         "output": {"t": 1}}
    return {"message": "Traces", "traces": [{"program": p, "other": None}] * variants(), "timed": {"usual": [], "flipped": []}}

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        pass
    def forward(self, x):
        p = forged(args=[{'t': 7}]); send(p)
