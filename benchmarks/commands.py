"""How long people wait for commands: wall clock and CPU seconds of each, with all processes that it starts.

    python -m benchmarks.commands [--times 3] [--against OTHER_CHECKOUT] [--run [PRESET] [--model NAME]]

`--against` measures another checkout's code by turns with this one's, which is the only fair way on a machine with other work.
`--run` adds the fixed cost of a training run: what `first_look trloo` of 1 and of 3 steps take, without what a step takes, by the
preset `cpu` or another, with the preset's policy or `--model`. It takes minutes; `--times 0 --run h200` measures nothing else.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent.parent
PAIR = ("envs/suite/level2/chain_bias_gelu_scale.py", "tests/red_team/honest/level2/chain_bias_gelu_scale.py")
COMMANDS: dict[str, tuple[str, ...]] = {
    "rlkernel --help": ("-m", "rlkernel", "--help"),
    "import rlkernel": ("-c", "import rlkernel"),
    "rlkernel evaluate, one pair": ("-m", "rlkernel", "evaluate", *PAIR, "--device", "cpu"),
    "an experiment's --list": ("-m", "experiments.first_look", "--list"),
    "the benchmark's --help": ("-m", "experiments.benchmark", "--help"),
}
"""Name -> what comes after `python`."""


@dataclass(frozen=True, slots=True)
class Took:
    """What one command took, in seconds."""

    wall: float
    cpu: float
    """User and system time of the command and of all processes that it started."""


def took(words: Sequence[str], checkout: Path) -> Took:
    """Run `python` with these words on the code of a checkout, before other code on the path. Ends with what a command that fails
    has written."""
    path = os.pathsep.join([str(checkout), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    with tempfile.TemporaryFile("w+") as written:
        since = time.perf_counter()
        process = subprocess.Popen([sys.executable, *words], cwd=checkout, env=environment, stdout=written, stderr=written)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - since
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            written.seek(0)
            sys.exit(f"python {' '.join(words)} ended with status {process.returncode}:\n{written.read()}")
    return Took(wall, usage.ru_utime + usage.ru_stime)


def fixed_cost(checkout: Path, preset: str, model: str | None = None) -> Took:
    """What a run takes beside its steps, with the measurements before the first and after the last. Of runs of 1 and of 3 steps:
    a step takes half of the difference, and what is left of the first run is the rest."""

    def run(steps: int) -> Took:
        with tempfile.TemporaryDirectory() as out:
            flags = ["--steps", str(steps), "--seeds", "0", "--preset", preset, "--out", out]
            flags += ["--model", model] if model else []
            return took(("-m", "experiments.first_look", "trloo", *flags), checkout)

    one, three = run(1), run(3)
    return Took((3 * one.wall - three.wall) / 2, (3 * one.cpu - three.cpu) / 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--run", nargs="?", const="cpu", metavar="PRESET")
    parser.add_argument("--model", help="the policy of --run, by default the preset's own")
    args = parser.parse_args()
    checkouts = [HERE] if args.against is None else [args.against.resolve(), HERE]
    table = Table("command", "code", "wall s", "least", "CPU s", "least", box=None)
    found: dict[tuple[str, Path], list[Took]] = {}
    for turn in range(args.times):
        for name, words in COMMANDS.items():
            for checkout in checkouts if turn % 2 else reversed(checkouts):
                found.setdefault((name, checkout), []).append(took(words, checkout))
    for checkout in checkouts if args.run else ():
        found[f"a run's fixed cost, {args.run}", checkout] = [fixed_cost(checkout, args.run, args.model)]
    for (name, checkout), each in sorted(found.items(), key=lambda row: (row[0][0], checkouts.index(row[0][1]))):
        numbers = [
            number
            for values in ([t.wall for t in each], [t.cpu for t in each])
            for number in (statistics.median(values), min(values))
        ]
        table.add_row(name, "this" if checkout == HERE else "other", *(f"{number:.2f}" for number in numbers))
    Console().print(table)


if __name__ == "__main__":
    main()
