"""Messages: every message between the evaluator's processes, a frozen dataclass each.

Start at `codec`, which turns them into headers and back, checked field by field. The others hold one border each:

    oracle     pool and the process that runs references        children   pool and tracer, compiler, CPU runner
    gpu        pool and a GPU's runner                          forking    pool and the fork server
    endings    answers in place of the one that was asked for, from any process
"""
