"""A score for any model, endpoint or directory of solutions: `python -m experiments.benchmark` (`command`).

`flags` are read into a `plan`: which problems, which answers, what is there already. `work` asks for the missing answers and has
them judged.
"""
