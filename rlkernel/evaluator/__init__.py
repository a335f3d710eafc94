"""The evaluator: traces untrusted candidates into Programs, which are data, and judges those.

Start at `pool`, which draws the stages. Others import `pool.open_pool`, `config`, and `cards.gpus` to see which cards there are.
One folder per process or stage:

    trace/      candidate to Program, in a locked child      cpu/ gpu/   execution of a Program
    program/    the data of a Program, and its replay        cards/      the pool's end of every GPU
    compile/    kernel text to binaries                      processes/  children, and the sandbox that locks them
    judging/    comparison, time, verdict                    ray/        the same evaluator on a cluster
    messages/   what the processes say to each other         native/     candidates as plain Python, where that is asked for
"""
