"""An OpenEnv environment: conversations about problems over HTTP, `pip install 'rlkernel[openenv]'`.

    rlkernel serve --problems DIR      the server, over a directory of KernelBench's format

Start at `client`, which has an example. `models` is what goes over the wire, `server` answers it with the evaluator's verdicts.
"""
