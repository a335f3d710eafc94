"""What work costs: `operations` and `operator_costs` for ATen's operators, `counts` for launches, `needs` for a forward that is
only traced, `roofline` for the time of it all, and `forward_costs` for a whole forward of a reference. `least_work` and
`least_written` say how much of it nobody can leave out."""
