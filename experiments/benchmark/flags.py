"""The flags of `experiments.benchmark`, and those checks of them that need no problem, file or GPU."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from algorithms import CONTEXTS, REWARDS
from rlkernel.errors import UsageError
from rlkernel.refine import Context
from rlkernel.types import Precision


@dataclass(frozen=True)
class Flags:
    """Flags of the benchmark. One of --model, --url with --model, and --solutions says what is scored."""

    model: str = ""
    """`small`, a directory, or a name on the Hugging Face hub; with --url, the name that the endpoint knows."""
    url: str = ""
    """Address of an OpenAI-compatible endpoint, e.g. http://localhost:8000/v1."""
    solutions: Path | None = None
    """A directory of <problem>.py or <problem>/<sample>.py."""
    missing: Literal["fail", "skip"] = "fail"
    """Whether a problem without a solution is a failure, or is left out of the benchmark."""

    problems: str = ""
    """A directory in KernelBench's layout, a .parquet or .jsonl file, or owner/name[:split][@revision] on the hub; without it,
    our suite."""
    column: tuple[str, ...] = ()
    """Columns of a table of your own, e.g. reference=code name=id; see docs/data.md."""
    levels: tuple[int, ...] = (1, 2, 3)
    """The levels of the problems; problems without a level are always taken."""
    split: Literal["auto", "validation", "train", "all"] = "auto"
    """auto: the validation split of our suite, or all of other problems."""
    only: tuple[str, ...] = ()
    """Names of problems, such as level1/19_ReLU."""
    first: int | None = None
    """Only the first so many problems of each level."""
    sizes: Literal["fit", "full"] = "fit"
    """fit: the rule of `rlkernel.evaluator.judging.sizes.fitting` for problems without SMALL; full: as the files have them."""

    samples: int = 1
    """Trajectories at each problem."""
    turns: int = 1
    """Turns of a trajectory. Before each but the first, the model is told what became of the one before."""
    context: str = "full"
    """Which earlier turns are shown: full, last:N, top:N (of highest reward) or window:N."""
    reward: str = "speed"
    """The reward by which top and window choose."""
    style: Literal["auto", "short", "full", "given", "kernelgym"] = "auto"
    """Style of the prompt and the feedback; see docs/data.md. auto: short for the small model, else full."""
    answers: Literal["ours", "kernelgym"] = "ours"
    """How the code is found in an answer. kernelgym: the last fenced block, whatever it holds."""
    seed: int = 0
    """What sampling is drawn from: another seed gives other answers."""
    max_new_tokens: int | None = None
    """Longest answer in tokens. Without it, 256 for the small model, else 4096."""
    temperature: float = 1.0
    """Temperature of sampling. Below 0, none is sent to an endpoint."""
    engine: str = "auto"
    """How a Hugging Face model is sampled: auto, slots (ours) or generate (Transformers')."""

    device: str = "auto"
    """Where candidates are judged: auto, cpu (modelled time), cuda, cuda:N, or ray (a Ray cluster)."""
    jobs: int = 0
    """Evaluations at a time; 0: one per core."""
    profile: str = "h200"
    """Without a GPU, the one to compile for and to model; see `rlkernel evaluate --help`."""
    precision: Precision = Precision.PYTORCH
    """The precision of float32 products: pytorch, strict or tf32, see docs/evaluator/compared.md."""
    untraceable: Literal["refused", "native"] = "refused"
    """native: judge what cannot be traced as plain Python in a fenced process, counted apart; needs a GPU."""
    audit: int = 0
    """Run so many accepted candidates as plain Python, and report how many agree; needs a GPU."""
    compiled: bool = True
    """On a GPU, also compare with the reference under torch.compile."""

    key_env: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the endpoint's key; one that is not set means no key."""
    token_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The field of a request that limits an answer; newer models want max_completion_tokens."""
    send_seed: bool = True
    """Send a seed with each request."""
    timeout: float = 600.0
    """Seconds for one request."""
    attempts: int = 8
    """Attempts at one request, with growing pauses."""
    in_flight: int = 8
    """Requests at a time."""
    per_minute: float = 0.0
    """Requests per minute. 0: no limit."""
    price_in: float = 0.0
    """Price of a million tokens of prompts."""
    price_out: float = 0.0
    """Price of a million tokens of answers."""
    max_cost: float = 0.0
    """No request is begun once this much is spent; 0: no limit."""

    out: Path = Path("runs")
    """The benchmark's directory is `benchmark/<name>-<fingerprint>` in it."""
    long: bool = False
    """Print every threshold, pass@k and rate, too."""
    list: bool = False
    """Show the problems with their sizes, and stop."""


def check(flags: Flags) -> None:
    """Check the flags. Raises UsageError for what is wrong with them."""
    if bool(flags.solutions) == bool(flags.model):
        raise UsageError("say what to score: --model NAME, --url URL --model NAME, or --solutions DIR")
    if flags.url and flags.solutions:
        raise UsageError("--url and --solutions exclude each other")
    for name in ("samples", "turns", "first", "max_new_tokens"):
        value = getattr(flags, name)
        if value is not None and value < 1:
            raise UsageError(f"--{name.replace('_', '-')} {value}: at least 1")
    if flags.audit < 0:
        raise UsageError(f"--audit {flags.audit}: use 0 for none, or a positive number")
    if flags.reward not in REWARDS:
        raise UsageError(f"--reward {flags.reward}: use one of {', '.join(REWARDS)}")
    if flags.jobs < 0:
        raise UsageError(f"--jobs {flags.jobs}: use 0 for one per core, or a positive number")


def parse_context(text: str) -> Context:
    """Read the value of --context: `full`, `last:4`, ... Raises UsageError for any other.

    >>> parse_context("top:2")
    TopTurns(count=2)
    """
    name, _, count = text.partition(":")
    takes = name in CONTEXTS and bool(dataclasses.fields(CONTEXTS[name]))
    if name not in CONTEXTS or (count and not (takes and count.isdecimal() and int(count) > 0)):
        raise UsageError(f"--context {text}: use full, or one of last:N, top:N and window:N with N at least 1")
    context: Context = CONTEXTS[name](int(count)) if count else CONTEXTS[name]()
    return context
