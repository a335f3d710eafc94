"""Environments: what a policy is given and told.

Start at `kernel_env`, which puts prompt, extraction and feedback together. `problems` loads suites, `suite/` is ours,
`kernelbench` chooses sizes for KernelBench's problems, and `teacher/` writes the corpus of the cold start.
"""
