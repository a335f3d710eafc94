"""The door of `python -m experiments.benchmark`."""

import sys

from experiments.benchmark.command import main

sys.exit(main(sys.argv[1:]))
