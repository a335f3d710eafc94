"""Training: from rollouts to updated weights, one run after the other, in one process or several.

Start at `loop.train`, whose docstring draws who waits for whom. `command` runs it with Ctrl-C handled. `batch` computes
advantages and makes batches, `trainer` is TRL's trainer with these batches, `placement` decides which card does what.
"""
