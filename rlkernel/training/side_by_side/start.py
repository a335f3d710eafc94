"""The start of a trainer process, which imports what takes seconds only when it is sure to end with its command."""

from __future__ import annotations

import json
import os
import socket
import sys

from rlkernel.errors import exit_status
from rlkernel.evaluator.processes.sandbox import die_with


def command_line(end: socket.socket) -> list[str]:
    """What starts a trainer process that has this end of a socket, as a child of this process. It finds the modules that this one
    finds, e.g. those beside the script that was started."""
    paths = json.dumps([str(path) for path in sys.path])
    code = f"import json, sys; sys.path[:] = json.loads(sys.argv[1]); import {__name__} as it; it.main()"
    return [sys.executable, "-c", code, paths, str(end.fileno()), str(os.getpid())]


def main() -> None:
    """Train until the command is done, and end at once when it is killed: what came after a checkpoint is lost either way."""
    descriptor, command = map(int, sys.argv[2:])
    die_with(command)
    from rlkernel.training.side_by_side import trainer_process

    sys.exit(exit_status(lambda: trainer_process.main(descriptor)))
