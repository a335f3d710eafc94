"""Second looks at a candidate without a GPU, at other sizes than those at which it was compared first.

Start at `deciding`, whose `SecondLooks` says who gets them. `looking` is one look; `confirming` and `excusing` hold candidates
that are right at the first sizes, and those that are not, against longer ones; `texts` is what a candidate's text says of its
sizes.
"""
