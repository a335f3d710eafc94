"""Policies: they take tokens, and give sampled tokens with their log-probabilities.

Start at `hf`, the policy that trains. `engine` is the Protocol of what samples for it: `batched` is the plain engine, `slots/`
the fast one (continuous batching). `endpoint` asks a server, `load` and `small` load models,
`attention` says which of torch's they compute with, `writer` is what benchmarks use.
"""
