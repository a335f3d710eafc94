"""rlkernel: reinforcement learning on Triton kernel generation. See README.md."""

import os

# Here, before any module imports trl or what it stands on: some of these are read once, at that import.
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
