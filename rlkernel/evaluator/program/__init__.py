"""Programs: what a trace leaves of a candidate. `schema` is the data, `replay` executes it, `kernel_source` reads kernel text."""
