"""The command line: `rlkernel evaluate`, `compare`, `metrics`, `doctor` and `serve`.

What a command stands on is imported when it is called: torch alone takes seconds, which `--help` need not wait for.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from rlkernel.commands.flags import nearest, parse_flags
from rlkernel.errors import UsageError, exit_status
from rlkernel.starting import loading
from rlkernel.types import Precision

FIGURE = "compare.png"
"""The name of a comparison's figure, where none is given."""


@dataclass(frozen=True)
class Evaluate:
    """Judge a candidate against a reference: `rlkernel evaluate REFERENCE.py CANDIDATE.py`, or every line of a manifest.

    A manifest's lines are {"id", "reference", "candidate"}, with paths relative to the manifest. Exits 0 when every case got a
    verdict, whatever it is; with --check, 1 when the candidate is not `correct`; and 2 for unusable arguments or a broken
    reference. A candidate that is traced for more than 120 s, compiled for more than 60 s, or run for more than 120 s (120 s on
    a GPU) gets the verdict `timeout`. Seconds are those of a processor, whatever else the machine does; who only waits has as
    many.
    """

    files: tuple[Path, ...] = ()
    """REFERENCE.py CANDIDATE.py, in KernelBench's format; with --problems, the problem's name stands for its file."""
    problems: str = ""
    """Where references are looked up by name, here and in a manifest: a directory, a .parquet or .jsonl file, or a data set."""
    column: tuple[str, ...] = ()
    """Columns of a table of your own, e.g. reference=code name=id; see docs/data.md."""
    manifest: Path | None = None
    """JSON lines to evaluate instead of one pair."""
    out: Path | None = None
    """Where a manifest's results go, one JSON object per line; what is there already is kept."""
    device: str = "auto"
    """auto: every GPU, or modelled time where there is none. cpu: modelled time. cuda: every GPU. cuda:N: that one. ray: the
    nodes of the Ray cluster of RAY_ADDRESS, or of the one that this machine is in."""
    jobs: int = 0
    """Evaluations at a time with a manifest; 0: one per core."""
    profile: str = "h200"
    """Without a GPU, the one to compile for and to model: h200, a100, h100, l40s, rtx4090 or b200. On a GPU, `card` makes the
    profile of the card itself, also where its model has a name here."""
    precision: Precision = Precision.PYTORCH
    """pytorch: the reference as PyTorch ships, and the candidate may use tf32. strict: no tf32. tf32: on both sides."""
    untraceable: Literal["refused", "native"] = "refused"
    """native: judge what cannot be traced by what it does as plain Python, in a fenced process; needs a GPU."""
    native: bool = False
    """Also run every accepted candidate as plain Python, and say whether verdict and speedup agree; needs a GPU."""
    compiled: bool = False
    """Also time each reference under torch.compile, once; takes seconds, GPU only."""
    json: bool = False
    """Print one pair's result as a JSON object."""
    check: bool = False
    """Exit with 1 where the one candidate is not correct."""

    def __call__(self) -> int:
        from rlkernel.evaluator.processes.launching import ahead

        if self.device != "ray":
            ahead()  # it imports what this process does, beside it
        from rlkernel.commands.evaluate import evaluate_pair, references
        from rlkernel.commands.manifest import evaluate_manifest
        from rlkernel.commands.native import check_native
        from rlkernel.evaluator.config import PATIENT, EvaluatorConfig
        from rlkernel.evaluator.devices import OF_THE_CARD
        from rlkernel.training.placement import select

        try:
            config = EvaluatorConfig(
                profile=self.profile,
                precision=self.precision,
                compiled=self.compiled,
                limits=PATIENT,
                untraceable=self.untraceable,
            )
        except ValueError as error:
            raise UsageError(f"--profile: {error}") from error
        try:
            cards = select(self.device)
        except ValueError as error:
            raise UsageError(f"--device: {error}") from error
        if self.profile == OF_THE_CARD and not cards and self.device != "ray":
            raise UsageError("--profile card: there is no GPU to measure; name one, such as h200")
        if self.compiled and not cards and self.device != "ray":
            raise UsageError("--compiled: references run under torch.compile on a GPU only: leave it out where there is none")
        check_native(self.device, bool(cards), native=self.native, untraceable=self.untraceable)
        if self.jobs < 0:
            raise UsageError(f"--jobs {self.jobs}: use 0 for one per core, or a positive number")
        known = references(self.problems, self.column)
        if self.manifest is not None:
            if self.check:
                raise UsageError("--check is for one pair: of a manifest, read the statuses in --out")
            if self.files or self.out is None:
                raise UsageError("--manifest needs --out RESULTS.jsonl, and no REFERENCE.py CANDIDATE.py beside it")
            evaluate_manifest(
                self.manifest, self.out, device=self.device, jobs=self.jobs, config=config, native=self.native, known=known
            )
            return 0
        if len(self.files) != 2:
            raise UsageError(f"expected REFERENCE.py CANDIDATE.py or --manifest FILE --out FILE, got {len(self.files)} files")
        found = evaluate_pair(*self.files, device=self.device, config=config, as_json=self.json, native=self.native, known=known)
        return 1 if self.check and not found.correct else 0


@dataclass(frozen=True)
class Compare:
    """Pair runs problem by problem: `rlkernel compare RUN RUN ...`. The arm of the first run is the baseline of the others.

    Runs of one arm that differ in their seeds alone count together. Prints tables with 95 % intervals, and writes a figure.
    """

    paths: tuple[Path, ...] = ()
    """Run directories, folders of them, or folders of reports."""
    metric: str = "fast_1.2"
    """The number by which problems are listed and drawn, e.g. reward, fast_1, fast_1.2, hacking_rate, lazy_rate or
    correct_rate."""
    step: int | None = None
    """Compare the measurements at this step; without it, each run's last one."""
    late: bool = False
    """Compare the means over the measurements in the second half of each run."""
    problems: int = 10
    """How many problems are listed, those with the largest differences; 0: none."""
    figure: Path | None = None
    """Where the figure goes; without it, compare.png in the report's folder, or in the folder that the first run is in."""
    json: bool = False
    """Print a JSON object with all problems instead of tables."""

    def __call__(self) -> int:
        from rlkernel.report import compare, compare_report
        from rlkernel.report.summary import Window

        runs = [path for path in self.paths if path.name != FIGURE]  # `runs/arms/*` has the figure of the last time
        if not runs:
            raise UsageError("nothing to compare: give run directories or report folders of at least two arms")
        if self.step is not None and self.late:
            raise UsageError("--step and --late exclude each other: leave one out")
        if self.problems < 0:
            raise UsageError(f"--problems {self.problems}: use 0 for none, or a positive number")
        window = Window(step=self.step) if self.step is not None else Window(share=0.5) if self.late else Window(last=1)
        pairs, timing = compare.compare_arms(runs, self.metric, window)
        figure = self.figure or compare.beside(runs[0]) / FIGURE
        try:
            compare_report.draw_differences(pairs, timing, self.metric, figure)
        except OSError as error:
            raise UsageError(f"--figure {figure}: cannot be written ({error.strerror}): choose another place") from error
        if self.json:
            print(json.dumps(compare_report.to_json(pairs, timing, self.metric), indent=1))
        else:
            compare_report.show(pairs, timing, self.metric, self.problems)
            print(f"figure: {figure}")
        return 0


@dataclass(frozen=True)
class Metrics:
    """Print numbers of a run, a line per step: `rlkernel metrics RUN`. Without --names, those that tell why a run diverges."""

    paths: tuple[Path, ...] = ()
    """The directory of the run."""
    names: tuple[str, ...] = ()
    """Numbers of metrics.jsonl, e.g. reward kl_k3; see docs/metrics.md."""
    split: Literal["train", "validation"] = "train"
    """Whose rows are printed."""

    def __call__(self) -> int:
        from rlkernel.commands.metrics import print_metrics

        if len(self.paths) != 1:
            raise UsageError(f"expected the directory of one run, got {len(self.paths)}")
        print_metrics(self.paths[0], self.names, self.split)
        return 0


@dataclass(frozen=True)
class Doctor:
    """Show what this machine offers and what that means. Exits 1 when something is missing or unsafe.

    With --model, show instead what training this model would take of its memory, from the model's configuration alone (a
    directory with its config.json is enough), and how many conversations can be sampled at a time. Exits 2 when it does not fit.
    """

    model: str = ""
    """`small`, or the directory or Hugging Face name of a causal LM."""
    weights: Literal["float32", "bfloat16"] = "float32"
    """The format of the weights that train, `Run.weights`."""
    lora_rank: int = 0
    """The rank of adapters; 0: all weights train."""
    staleness: int = 0
    """Steps between the weights that sample and those that train."""
    turns: int = 3
    """The most turns of a trajectory."""
    max_new_tokens: int = 512
    """The most tokens that the policy may sample in one turn."""
    device: str = "auto"
    """Where the evaluator would run: auto, cpu, cuda, cuda:N or ray."""
    evaluation_gib: int = 0
    """The most GiB that evaluations may take of a card that they share with the policy; 0: half of it, which is also the most."""
    card_gib: float = 0.0
    """Plan for a GPU of so many GiB that the policy shares with evaluations, instead of for this machine."""
    gib: float = 0.0
    """Plan for a GPU on which the policy may take so many GiB, instead of for this machine."""
    pieces: int = 1
    """The processes that hold a piece of the weights each (FSDP2)."""
    rule: Literal["adamw", "sgd"] = "adamw"
    """The rule of an update, `Optimiser.rule`; sgd keeps no moments."""

    def __call__(self) -> int:
        from rich.console import Console

        from rlkernel.commands import doctor as doctors

        if not self.model:
            if given := [field.name for field in fields(self) if getattr(self, field.name) != field.default]:
                raise UsageError(f"--{given[0].replace('_', '-')} plans the memory of a model: name one with --model")
            return 0 if doctors.show(Console()) else 1
        from rlkernel.training.memory import Demand
        from rlkernel.training.memory_table import memory_table, verdict
        from rlkernel.training.preflight import plan_demand

        doctors.check_flags(self)
        flags = ("device", "evaluation_gib", "card_gib", "gib", "pieces")
        room = doctors.policy_room(**{name: getattr(self, name) for name in flags})
        same = ("model", "weights", "lora_rank", "staleness", "turns", "max_new_tokens", "pieces", "rule")
        demand = Demand(**{name: getattr(self, name) for name in same})
        found, helps = plan_demand(demand, room)
        Console(width=100).print(memory_table(found))
        print(verdict(found, helps))
        return 0 if found.fits else 2


@dataclass(frozen=True)
class Serve:
    """Serve problems and verdicts to OpenEnv clients, `pip install 'rlkernel[openenv]'`. Ctrl-C ends it."""

    problems: str = ""
    """A directory of files in KernelBench's format, a .parquet or .jsonl file, or a data set."""
    column: tuple[str, ...] = ()
    """Columns of a table of your own, e.g. reference=code name=id; see docs/data.md."""
    turns: int = 3
    """Answers after which a conversation ends."""
    device: str = "auto"
    """Where candidates are judged: auto, cpu (modelled time), cuda or cuda:N."""
    jobs: int = 0
    """Evaluations at a time; 0: one per core."""
    host: str = "127.0.0.1"
    """The address to listen on: whoever reaches it can have candidates judged."""
    port: int = 8000
    """The port to listen on."""

    def __call__(self) -> int:
        from rlkernel.commands.serve import serve

        if not self.problems:
            raise UsageError("--problems is missing: give a directory of files in KernelBench's format, a table or a data set")
        serve(self.problems, self.column, turns=self.turns, device=self.device, jobs=self.jobs, host=self.host, port=self.port)
        return 0


Command = Evaluate | Compare | Metrics | Doctor | Serve
COMMANDS: Mapping[str, tuple[Command, str]] = {
    "evaluate": (Evaluate(), "files"),
    "compare": (Compare(), "paths"),
    "metrics": (Metrics(), "paths"),
    "doctor": (Doctor(), ""),
    "serve": (Serve(), ""),
}
"""Name -> the command with its defaults, and the field that takes what is no flag."""


def _parse(args: Sequence[str]) -> Command:
    """The command that `args` ask for. Raises UsageError with one line; `--help` prints and exits."""
    names = ", ".join(COMMANDS)
    if not args:
        raise UsageError(f"Expected one of {{{names}}}. (see rlkernel --help)")
    if args[0] in ("-h", "--help"):
        print(f"usage: rlkernel [-h] {{{names}}} ...\n")
        print("\n\n".join(f"{name}: {inspect.getdoc(command)}" for name, (command, _) in COMMANDS.items()))
        sys.exit(0)
    if args[0] not in COMMANDS:
        raise UsageError(
            f"there is no `rlkernel {args[0]}`{nearest(args[0], COMMANDS)}; the commands are {names} (see rlkernel --help)"
        )
    command, rest = COMMANDS[args[0]]
    return parse_flags(command, args[1:], f"rlkernel {args[0]}", rest)


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status of `rlkernel` with these words, or with those of the command line."""
    args = sys.argv[1:] if argv is None else argv

    def run() -> int:
        command = _parse(args)
        if not isinstance(command, Compare | Metrics):  # which read files
            loading(f"torch and what `rlkernel {args[0]}` needs besides", "torch")
        return command()

    return exit_status(run)


if __name__ == "__main__":
    sys.exit(main())
