"""rlkernel: reinforcement learning on Triton kernel generation. See README.md."""

import os

# Here, before any module imports trl or what it stands on: some of these are read once, at that import.
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
# A container may run as a number that no file of users lists. Libraries then fail where they ask for a home, or take `~` for a
# folder of the working directory; with a home that does not exist, they do without one.
if os.path.expanduser("~") == "~":
    os.environ["HOME"] = "/nonexistent"
