"""Commands about the world of generated problems: `check` its honest drafts, search its `oracle`, draw its `difficulty`, write
its `page`.

Each goes on where it stopped: what was judged is kept in `runs/world`. Exit status 75: run it again.
"""

from rlkernel.errors import tell_usage_errors

tell_usage_errors()
