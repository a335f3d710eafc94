"""Environments: what a policy is given and told.

Start at `kernel_env`, which puts prompt, extraction and feedback together. `problems` loads suites, `suite/` is ours,
`size_store` keeps the sizes that were chosen for KernelBench's problems, and `teacher/` writes the corpus of the cold start.
"""
