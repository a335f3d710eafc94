"""How cost grows with cores, cards, rollouts and turns: measured points, the limit of each as a line, and an estimate on paper.

    python -m benchmarks.scaling [--figure docs/scaling.png] [--cpu 2:12.1:11-23 16:54:11-21] [--card 1:32:36.3:11-23]

Reads the runs of `evaluator_throughput`, `loop` and `training` in `benchmarks/results`. `--cpu CORES:PER_SECOND:DATE` gives
points of `evaluator_cpu`, which stores none, and `--card CARDS:CORES:PER_SECOND:DATE` those of `evaluator_throughput` that were
not stored. Each point bears the day of its measurement. Nothing is measured here. Limits of cores and cards are those of the
first stored run; where a step's evaluations cost time, the rate is the last that one card was seen at. The estimate is of a
training step of the papers: 16 prompts x 16 rollouts x 3 turns, which are 768 evaluations, with 14 billion weights in full.
`Step` has its formulas and assumptions.
"""

from __future__ import annotations

import argparse
import calendar
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # draws to files; without it, importing pyplot may look for a display

from matplotlib import pyplot as plt
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"
CARDS = (1, 8, 64)
BANDWIDTH, FLOPS, MEMORY = 4.8e12, 989e12, 141e9
"""An H200: bytes/s of its memory, bfloat16 operations/s without sparsity, bytes of memory."""
CARD_STYLES: tuple[dict[str, Any], ...] = ({"linestyle": "-."}, {"linestyle": (0, (1, 1)), "linewidth": 2.2})
"""How the limits of one card and of several are drawn."""
LOOP_WHEN = "11-21"
"""The date of the stored runs of `loop`, which `benchmarks/results/README.md` says and they themselves do not."""
USABLE = 0.6
"""An assumption: the share of the bandwidth that sampling 14 billion weights reaches."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Cold evaluations per second of one machine."""

    cores: int
    cards: int
    per_second: float
    card_per_second: float | None = None
    """What one card would serve if it never waited."""
    core_seconds: float | None = None
    """The CPU time of one evaluation."""
    when: str = ""
    """Month and day of the measurement."""

    @staticmethod
    def read(run: dict[str, Any]) -> Judged:
        """A point from a result of `evaluator_throughput`."""
        busy = run["cpu"]["parent"] + run["cpu"]["children"]
        machine, rate = run["machine"], run["per_second"]
        when = machine.get("when", "")[5:10]
        cards = len(machine["gpus"])
        return Judged(machine["cores"], cards, rate, run["gpu_capacity_per_second"] / cards, busy / rate, when)


@dataclass(frozen=True, slots=True)
class Step:
    """A training step on `cards` H200s of 16 cores each, in seconds, by these formulas.

    Sampling: the rollouts are divided among the cards, and each token of a turn reads the weights in bfloat16 once and every
    row's keys and values at their mean length, at `USABLE` of the bandwidth; rows that do not fit are sampled in further waves.
    Evaluation: at the rate per card that was measured. Training: 8 operations per weight and token (forward, backward and a
    second forward, for checkpointing), at the share of the card's rate that full fine-tuning of 1.7B was measured at. Traffic
    between cards, answers of different length and the optimiser's step are left out, so it is a lower bound.
    """

    cards: int
    answer_tokens: int
    evaluations_per_second: float
    training_share: float
    weights: float = 14.8e9
    rollouts: int = 256
    turns: int = 3
    prompt_tokens: int = 2000
    bytes_per_token: int = 2 * 40 * 8 * 128 * 2
    """Keys and values of 40 layers, 8 heads of 128, in bfloat16."""

    @property
    def tokens(self) -> int:
        """The length of a whole conversation."""
        return self.prompt_tokens + self.turns * self.answer_tokens

    @property
    def sampling(self) -> float:
        rows = math.ceil(self.rollouts / self.cards)
        room = int((0.9 * MEMORY - 2 * self.weights) / (self.tokens * self.bytes_per_token))
        waves = math.ceil(rows / room)
        mean_context = (self.prompt_tokens + self.tokens) / 2
        moved = 2 * self.weights * waves + rows * mean_context * self.bytes_per_token
        return self.turns * self.answer_tokens * moved / (USABLE * BANDWIDTH)

    @property
    def judging(self) -> float:
        return self.rollouts * self.turns / (self.evaluations_per_second * self.cards)

    @property
    def training(self) -> float:
        work = 8 * self.weights * self.rollouts * self.tokens
        return work / (self.training_share * FLOPS * self.cards)


def points() -> list[Judged]:
    """The stored runs of `evaluator_throughput`."""
    one = json.loads((RESULTS / "evaluator_throughput_h200.json").read_text())
    two = json.loads((RESULTS / "evaluator_throughput_2xh200.json").read_text())
    return [Judged.read(one), *(Judged.read(run) for run in two.values())]


def last_of_one_card(judged: Sequence[Judged]) -> float:
    """The evaluations per second that one card was last seen at."""
    return max((p for p in judged if p.cards == 1), key=lambda p: p.when).per_second


def training_share() -> float:
    """The share of the card's rate that full fine-tuning of 1.7B reaches, its vocabulary's embedding included."""
    cases = json.loads((RESULTS / "training_h200.json").read_text())["cases"]
    case = next(case for case in cases if case["case"] == "1.7b-full")
    return float(8 * case["parameters"] * case["tokens_per_second"] / FLOPS)


def _dated(axes: Any, points: Sequence[tuple[float, float, str]], places: Sequence[tuple[int, int]]) -> None:
    """Write when each point was measured, so many points of the printer's to the right of it and above it, in turn."""
    for index, (x, y, when) in enumerate(points):
        axes.annotate(_day(when), (x, y), places[index % len(places)], textcoords="offset points", va="center", fontsize=8)


def _day(when: str) -> str:
    """A date as a label shows it.

    >>> _day("11-21"), _day("")
    ('21 Nov', '')
    """
    month, _, day = when.partition("-")
    return f"{int(day)} {calendar.month_abbr[int(month)]}" if day else ""


def draw(judged: Sequence[Judged], modelled: Sequence[tuple[float, float, str]], path: Path) -> None:
    """Three drawings beside each other: evaluations per second by cores and by cards, and seconds of a step by evaluations."""
    figure, (by_cores, by_cards, by_step) = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
    first = judged[0]
    assert first.core_seconds is not None and first.card_per_second is not None
    then = _day(first.when)
    most = max(2 * max(p.cores for p in judged), 64)
    by_cores.plot([0, most], [0, most / first.core_seconds], "--", color="tab:blue", label=f"limit: cores ({then})")
    for cards, style in zip(sorted({p.cards for p in judged}), CARD_STYLES, strict=False):
        height = cards * first.card_per_second
        by_cores.axhline(height, color="tab:green", **style, label=f"limit: {_cards(cards)}, always busy ({then})")
    for cards, marker in zip(sorted({p.cards for p in judged}), "os^D", strict=False):
        own = [p for p in judged if p.cards == cards]
        of = f"measured on {_cards(cards)}, the day beside it"
        by_cores.plot([p.cores for p in own], [p.per_second for p in own], marker, color="tab:blue", label=of)
    orange = {"color": "tab:orange", "fillstyle": "none", "markersize": 9}
    by_cores.plot(
        [x for x, _, _ in modelled], [y for _, y, _ in modelled], "s", label="modelled time, no card, the day above it", **orange
    )
    _dated(by_cores, [(p.cores, p.per_second, p.when) for p in judged], [(8, 0), (8, 4), (8, -4)])
    _dated(by_cores, modelled, [(-12, 12)])
    by_cores.set(xlabel="cores", ylabel="cold evaluations/s", ylim=(0, 280), title="Judging, by cores")
    counts = [p.cards for p in judged]
    by_cards.plot([0, 4], [0, 4 * first.card_per_second], "-.", color="tab:green", label=f"limit: cards, always busy ({then})")
    by_cards.plot([0, 4], [0, 4 * 16 / first.core_seconds], "--", color="tab:blue", label=f"limit: 16 cores per card ({then})")
    by_cards.plot(counts, [p.per_second for p in judged], "o", color="tab:blue", label="measured, the day beside it")
    _dated(by_cards, [(p.cards, p.per_second, p.when) for p in judged], [(8, 0), (8, 4), (8, -4)])
    by_cards.set(xlabel="H200s", ylabel="cold evaluations/s", title="Judging, by cards")
    run = json.loads((RESULTS / "loop_h200.json").read_text())
    side = next(side for side in run["sides"] if side["side"] == "ours")
    per_turn = run["prompts"] * run["rollouts"]
    work = (side["seconds_generation"] + side["seconds_training"]) / (per_turn * run["turns"])
    rate = last_of_one_card(judged)
    most = 4 * per_turn * run["turns"]
    by_step.plot([0, most], [0, most * work], "--", color="tab:blue", label="limit: the card that samples and trains")
    by_step.plot([0, most], [0, most / rate], ":", color="tab:green", label=f"limit: a card that judges {rate:.0f}/s")
    point = (per_turn * run["turns"], side["seconds_wall"], LOOP_WHEN)
    by_step.plot([point[0]], [point[1]], "o", color="tab:blue", label="measured, 0.6B, simulated evaluator")
    _dated(by_step, [point], [(-8, 12)])
    by_step.set(xlabel="rollouts x turns of 300 tokens", ylabel="seconds of a step", title="A training step")
    for axes in (by_cores, by_cards, by_step):
        axes.legend(fontsize=8)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def show(rate: float, share: float, answer_tokens: int, console: Console) -> None:
    """Print the estimate on paper."""
    table = Table("cards", "sampling s", "evaluation s", "training s", "step s", box=None)
    for cards in CARDS:
        step = Step(cards, answer_tokens, rate, share)
        whole = max(step.sampling, step.judging) + step.training  # an answer is judged while others are sampled
        table.add_row(str(cards), *(f"{value:.0f}" for value in (step.sampling, step.judging, step.training, whole)))
    console.print(f"An ESTIMATE, not a measurement: a step of 768 evaluations, 14B in full, answers of {answer_tokens} tokens;")
    console.print(
        f"evaluation at {rate:.0f}/s per card, training at {share:.0%} of a card, sampling at {USABLE:.0%} of its bandwidth"
    )
    console.print(table)


def _point(text: str) -> tuple[float, float, str]:
    cores, _, rest = text.partition(":")
    rate, _, when = rest.partition(":")
    return float(cores), float(rate), when


def _card(text: str) -> Judged:
    cards, _, rest = text.partition(":")
    cores, rate, when = _point(rest)
    return Judged(int(cores), int(cards), rate, when=when)


def _cards(count: int) -> str:
    return f"{count} H200{'s' * (count > 1)}"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--figure", type=Path, default=Path("docs/scaling.png"))
    parser.add_argument("--cpu", type=_point, nargs="*", default=[], metavar="CORES:PER_SECOND:DATE", help="from evaluator_cpu")
    parser.add_argument(
        "--card", type=_card, nargs="*", default=[], metavar="CARDS:CORES:PER_SECOND:DATE", help="from evaluator_throughput"
    )
    parser.add_argument("--answer-tokens", type=int, default=2000, help="tokens of an answer, all of one length")
    args = parser.parse_args(argv)
    judged = [*points(), *args.card]
    draw(judged, args.cpu, args.figure)
    console = Console()
    for point in judged:
        limits = ""
        if point.card_per_second is not None and point.core_seconds is not None:
            cards, cores = point.cards * point.card_per_second, point.cores / point.core_seconds
            limits = f", limit of the cards {cards:.0f}/s, of the cores {cores:.0f}/s"
        console.print(f"{point.when}: {point.cores} cores, {_cards(point.cards)}: {point.per_second:.1f}/s{limits}")
    show(last_of_one_card(judged), training_share(), args.answer_tokens, console)
    console.print(f"figure: {args.figure}")


if __name__ == "__main__":
    main()
