"""Reports: they say what runs amount to, as tables, claims with verdicts, figures and one HTML page.

Start at `summary`, which reads runs. `claims` gives verdicts on differences between arms, `compare` pairs arms problem by
problem, and `report` makes the page, with `figure`, `best_kernels` and `viewer`. Nothing here trains or evaluates.
"""
