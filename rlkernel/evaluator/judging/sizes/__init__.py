"""Sizes of problems without a GPU: start at `fitting`, which finds those at which results are compared; `lengthening` finds
longer ones for a second look, and `varying` other values of each. All search with `size_search` among the constants that
`constants` finds in a reference's text; `resizing` is their arithmetic."""
