"""Judging: what a problem wants, whether outputs match, what time should cost, and the one verdict that follows.

Start at `oracle`, the trusted side's door: it knows one reference. `drawing` makes the rounds of a problem, of which
`construction` judges one module and `rounds` one call; `too_hard` tells which say nothing. `survey` and `degenerate` look at a
reference before anybody tries it. `timing` makes speedups of measured times, and `verdict` combines all facts into an
`Evaluation`. One folder per question, of which later ones import earlier ones:

    costs/       what an operator, a launch or a forward computes and moves, and the time of that by the model
    references/  calls of a reference: its weights, its float64, its trace
    errors/      by how much the reference errs, and how far a candidate may be off
    inputs/      inputs that a problem's author would not draw, and where they may be given
    sizes/       at which sizes a problem is judged without a GPU
"""
