"""A world with headroom: generated problems of several families, a space of schedules for each, and a teacher that draws from it.

ops.py -> task.py        operations, and a problem made of them
suite.py                 the problems of training and validation, drawn from a seed
schedule.py              how a task is cut into kernels, and the knobs of each
write/                   a task and a schedule as a candidate's text
mistakes.py              what goes wrong in it
drafts.py, teacher.py    what a conversation begins with, and what follows a verdict
corpus.py                conversations with the evaluator
oracles.py               the best speedup that a search has found for each validation problem
"""
