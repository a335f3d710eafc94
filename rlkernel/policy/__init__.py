"""Policies: tokens in, sampled tokens and their log-probabilities out.

Start at `hf`, the policy that trains; `engine` is the Protocol of its samplers, `batched` the plain one and `slots/` the fast one
(continuous batching). `endpoint` asks a server, `small` loads the model that is shipped, `writer` is what benchmarks use.
"""
