"""The door of `python -m experiments.results`."""

import sys

from experiments.results.command import main

sys.exit(main(sys.argv[1:]))
