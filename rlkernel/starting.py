"""Says at once what a command is about to load, so that nobody stares at an empty terminal while libraries are imported.

It imports nothing that takes time, and is called before anything is imported that does. The packages whose modules are commands
call it in their `__init__`, which Python runs before the module.
"""

from __future__ import annotations

import os
import sys


def loading(what: str, slowest: str) -> None:
    """Say on standard error what is being loaded. slowest: the module among it that takes longest; where that is loaded already,
    nothing is said. Of several processes that train one run, the first alone speaks."""
    if slowest not in sys.modules and os.environ.get("RANK", "0") == "0":
        print(f"loading {what} (seconds; half a minute where the cores are busy)", file=sys.stderr, flush=True)


def loading_command(what: str) -> None:
    """The same for torch and `what`, where Python was started as `python -m` with a module of the package that is being imported:
    until it has found that module, `-m` stands in the place of its path. A package that is imported by others says nothing."""
    if sys.argv[:1] == ["-m"]:
        loading(f"torch and {what}", "torch")
