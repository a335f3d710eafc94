"""By how much an output may be off: start at `comparison`, whose measure `own_error` takes of the reference itself and whose
bounds `tolerance` derives. `tensor_cores` is what tf32 and half precision make of a reference, `noise` what is none of its
answer."""
