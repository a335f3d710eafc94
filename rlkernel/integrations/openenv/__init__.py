"""An OpenEnv environment: conversations about problems over HTTP, `pip install 'rlkernel[openenv]'`.

    rlkernel serve --problems SOURCE   the server, over a directory of KernelBench's format, a table or a data set

Start at `client`, which has an example. `models` is what goes over the wire, `server` answers it with the evaluator's verdicts.
"""
