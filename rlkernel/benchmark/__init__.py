"""Benchmarks: a fixed policy's answers to many problems, scored as Fast@p.

Start at `attempts`, which asks, evaluates and keeps every turn; `scores` computes Fast@p, `results` prints tables, `page` shows
every answer. The command is `python -m experiments.benchmark`.
"""
