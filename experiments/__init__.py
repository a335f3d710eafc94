"""Experiments: one file per ablation. Its docstring is the claim, `ARMS` are the runs, `CLAIMS` are judged by rule.

Start at `arms`, which holds every arm once and the scales at which they run. `catalogue` lists the experiments. `all` runs all of
them, `results` writes pages from finished runs, `cold_start` makes the policies and `benchmark` scores any model.
`prepare_problems` and `prepare_conversations` write the tables that both take.
"""

from rlkernel.errors import tell_usage_errors
from rlkernel.starting import loading_command

tell_usage_errors()
loading_command("the experiments")
