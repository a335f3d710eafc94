"""A reference and its calls: start at `reference_calls`. `plan` makes a module once more, with weights of its own; `borne` and
`blame` are about its constants; `widening` takes it to float64; `traced_reference` has it as a Program."""
