"""rlkernel: reinforcement learning on Triton kernel generation. See README.md."""
