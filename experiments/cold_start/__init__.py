"""Policies that know the format, before any reinforcement: `python -m experiments.cold_start` (`command`, `flags`).

`miniature` makes one of our own from nothing by one of the `recipes`, trained by `optimizer`. A model that exists is trained in
`experiments.tuning`.
"""
