"""Says at once what a command is about to load, so that nobody stares at an empty terminal while libraries are imported.

It imports nothing that takes time, and is called before anything is imported that does. The packages whose modules are commands
call it in their `__init__`, which Python runs before the module.
"""

from __future__ import annotations

import os
import sys


def open_streams() -> None:
    """Open /dev/null in the place of each standard stream that the caller has closed (`>&-`, some supervisors). Otherwise the
    next file or socket that is opened has its number, and is written to by whoever prints."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number, which is this one
        if getattr(sys, name) is None:
            stream = open(number, "r" if number == 0 else "w", closefd=False)  # noqa: SIM115  (it lasts as long as the process)
            setattr(sys, name, stream)


def loading(what: str, slowest: str) -> None:
    """Say on standard error what is being loaded. slowest: the module among it that takes longest; where that is loaded already,
    nothing is said. Of several processes that train one run, the first alone speaks."""
    if slowest not in sys.modules and os.environ.get("RANK", "0") == "0":
        print(f"loading {what} (seconds; half a minute where the cores are busy)", file=sys.stderr, flush=True)


def loading_command(what: str) -> None:
    """The same for torch and `what`, where Python was started as `python -m` with a module of the package that is being imported:
    until it has found that module, `-m` stands in the place of its path. A package that is imported by others says nothing."""
    if sys.argv[:1] == ["-m"]:
        open_streams()
        loading(f"torch and {what}", "torch")
