"""Problems: what a policy is given.

Start at `problems`, which loads suites; `suite/` is ours. `size_store` keeps the sizes that were chosen for KernelBench's
problems, and `teacher/` writes the corpus of the cold start. What a policy is told by default is in `rlkernel.environment`.
"""
