"""The door of `python -m experiments.cold_start`."""

import sys

from experiments.cold_start.command import main

sys.exit(main(sys.argv[1:]))
