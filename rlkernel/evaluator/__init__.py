"""The evaluator: traces untrusted candidates into Programs and judges those."""
