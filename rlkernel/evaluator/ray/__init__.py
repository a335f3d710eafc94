"""The same evaluator on the nodes of a Ray cluster. Start at `pool.open_ray_pool`, which is all that others import.

pool       the evaluator on the driver: who judges what, and what a loss means
workers    all actors of the cluster: kept alive in their places, given to evaluations as seats
worker     one actor as the driver sees it: opened, asked, closed
places     the nodes, and where on them an actor may live
actor      what runs on a node: a pool of its own
messages   what an actor answers
"""
