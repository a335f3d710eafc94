"""Commands: what a person types. `cli` is `rlkernel`, `experiment` is behind every `python -m experiments.NAME`.

`evaluate` judges pairs of files, `doctor` says what a machine offers. Every other room can be imported from here, and
this one from none.
"""
