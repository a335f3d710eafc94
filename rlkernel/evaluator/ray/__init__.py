"""The same evaluator on the nodes of a Ray cluster. Start at `pool.open_ray_pool`; `workers` keeps one actor alive per node."""
