"""Judging: whether outputs match, what time should cost, and the one verdict that follows.

`comparison` bounds errors, `oracle` knows the reference, `roofline` models time, `timing` makes speedups of measured times,
`verdict` combines facts into an `Evaluation`.
"""
