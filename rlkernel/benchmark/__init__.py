"""Benchmarks: they score the answers of a fixed policy to many problems as Fast@p.

Start at `trajectories`, which asks, evaluates and keeps every turn; `scores` computes Fast@p, `results` writes it, `tables`
prints it, `page` shows every answer. The command is `python -m experiments.benchmark`.
"""
