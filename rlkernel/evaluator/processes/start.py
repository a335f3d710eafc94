"""Starts the zygote with garbage collection off: a fifth of its imports would be collections of what nothing gives back."""

import gc
import importlib

if __name__ == "__main__":
    gc.disable()
    importlib.import_module("rlkernel.evaluator.processes.zygote").main()
