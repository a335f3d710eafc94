"""Continuous batching: a fixed number of slots, each of which takes the next completion as soon as its own is done.

Start at `engine`, which is the `rlkernel.policy.engine.Engine` to import from here. It fills slots with `prefill` and goes on
with `decode_step`; `cache` holds keys and values, `attention` is the Triton kernel that reads them.
"""
