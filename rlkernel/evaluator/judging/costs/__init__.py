"""What work costs: `operations` and `operator_costs` for ATen's operators, `counts` for launches, `needs` for a forward that is
only traced, and `roofline` for the time of it all. `least_work` and `least_written` say how much of it nobody can leave out."""
