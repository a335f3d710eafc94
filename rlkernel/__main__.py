"""`python -m rlkernel` is the command `rlkernel`."""

import sys

from rlkernel.commands.cli import main

if __name__ == "__main__":
    sys.exit(main())
