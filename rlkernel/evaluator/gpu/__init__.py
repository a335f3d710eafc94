"""Execution in the trusted process that owns a GPU. `runner` answers the pool; `session` is a candidate's stay."""
