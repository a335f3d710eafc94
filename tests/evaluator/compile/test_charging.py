"""What compilers take of the time of those who start them."""

from __future__ import annotations

import signal
import subprocess
import sys

BURN = "import time\nwhile time.process_time() < 1.1:\n    pass\n"
STARTING = f"""
import resource, subprocess, sys
from rlkernel.evaluator.compile.charging import charge_children
resource.setrlimit(resource.RLIMIT_CPU, (4, 5))
for _ in range(8):
    subprocess.run([sys.executable, "-c", {BURN!r}])
    charge_children()
    print(*resource.getrlimit(resource.RLIMIT_CPU), flush=True)
"""


def test_what_a_process_has_started_counts_as_its_own() -> None:
    ran = subprocess.run([sys.executable, "-c", STARTING], capture_output=True, text=True, check=False)
    told = ran.stdout.splitlines()
    assert (ran.returncode, told[:2]) == (-signal.SIGXCPU, ["3 5", "2 5"]) and len(told) < 4
