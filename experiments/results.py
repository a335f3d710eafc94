"""Write `docs/results/` from finished runs: what the papers claim beside what was measured, verdicts by rule.

    python -m experiments.results [--runs runs] [--out docs/results]

    <out>/README.md             all claims with verdicts, and how to read them
    <out>/kernels.md            the ten best kernels of the best run
    <out>/<experiment>/         README.md, figure.png, numbers.json (every measurement), manifests.json (what ran)

Runs of one scale are compared, never of two: measured time before modelled, then the scale with the most runs. Everything is
generated; nothing in the directory is edited by hand.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments import test_time_scaling
from experiments.catalogue import NAMES, load
from rlkernel import cli
from rlkernel.claims import RULE, Judged, Verdict, judge
from rlkernel.config import METHODS, to_json
from rlkernel.errors import UsageError
from rlkernel.figure import draw
from rlkernel.kernels import Kernel, best_kernels, best_run
from rlkernel.outcomes import COVERAGES, KEYS
from rlkernel.report import Story, show_difference
from rlkernel.summary import METRICS, ArmSummary, RunRecord, Window, by_arm, common_timing, read_run, summarise

SCALE = (
    *("problems", "environment", "model", "rollouts", "max_new_tokens", "temperature", "steps", "learning_rate"),
    *("validation_every", "validation_rollouts"),
)
"""Fields of a run that all arms of a comparison share."""
TRAIN_KEYS = ("reward", "grad_norm", "entropy", "mismatch", "kept_turns", "loss")
LATE = Window(share=0.5)
BANDS = ((0.0, 0.3), (0.3, 0.7), (0.7, 1.01))
"""Of coverage; below the first bound a kernel is lazy."""


@dataclass(frozen=True)
class Flags:
    """Of the command line."""

    runs: Path = Path("runs")
    """What the experiments wrote: their `--out`."""
    out: Path = Path("docs/results")


@dataclass(frozen=True)
class Found:
    """An experiment and its runs, in the order of its arms."""

    name: str
    story: Story
    runs: tuple[RunRecord, ...]

    @property
    def judged(self) -> tuple[Judged, ...]:
        return judge(self.story.claims, by_arm(self.runs))


def main(argv: Sequence[str]) -> int:
    """Exit status 0; 2 after one line when there is no finished run."""
    return cli.run(lambda: _main(cli.parse_overrides(Flags(), list(argv), "python -m experiments.results")))


def _main(flags: Flags) -> int:
    # An experiment of which a shared arm alone was run has nothing to compare.
    found = [one for one in collect(flags.runs) if any(judged.difference is not None for judged in one.judged)]
    if not found:
        raise UsageError(f"{flags.runs} has no finished runs that an experiment compares: run `python -m experiments.all` first")
    for one in found:
        write_experiment(one, flags.out / one.name)
    everyone = [run for one in found if one.name != "test_time_scaling" for run in one.runs]
    best = best_run(everyone)
    kernels = best_kernels(best) if best is not None else ()
    (flags.out / "kernels.md").write_text(kernels_page(best, kernels), encoding="utf-8")
    (flags.out / "README.md").write_text(overview(found), encoding="utf-8")
    counts = Counter(str(judged.verdict) for one in found for judged in one.judged)
    print(f"{flags.out / 'README.md'}: {', '.join(f'{count} {verdict}' for verdict, count in sorted(counts.items()))}")
    return 0


def collect(runs: Path) -> Iterator[Found]:
    """All experiments with their finished runs, of one scale each."""
    trained = _finished(runs / "arms")
    for name in NAMES:
        experiment = load(name)
        own = [run for run in trained if run.arm in experiment.arms and _is_arm(run, to_json(experiment.arms[run.arm]))]
        rates = {arm: run.learning_rate for arm, run in experiment.arms.items()}
        yield Found(name, experiment.story, _ordered(_one_scale(own, rates), list(experiment.arms)))
    refined = [run for run in _finished(runs / "refined") if run.arm in test_time_scaling.ARMS]
    yield Found("test_time_scaling", test_time_scaling.STORY, _ordered(_one_scale(refined, {}), list(test_time_scaling.ARMS)))


def _finished(directory: Path) -> list[RunRecord]:
    manifests = sorted(directory.glob("*/manifest.json"))
    return [run for path in manifests if (run := _read(path.parent)) is not None]


def _read(directory: Path) -> RunRecord | None:
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    return read_run(directory) if "finished" in manifest else None


def _is_arm(run: RunRecord, arm: Mapping[str, Any]) -> bool:
    """Whether a run is of this arm as it is defined now; its sizes may differ."""
    return all(run.manifest["run"].get(key) == arm[key] for key in (*METHODS, "gamma", "staleness", "rollout_dtype"))


def _one_scale(runs: Sequence[RunRecord], rates: Mapping[str, float]) -> list[RunRecord]:
    """Of the scale that comes first: measured, then most runs; of two runs of one arm and seed the later one. rates: the learning
    rates of the arms as they are defined; a scale multiplies all of them by the same number."""
    scales: dict[str, list[RunRecord]] = {}
    for run in runs:
        scales.setdefault(_scale(run, rates.get(run.arm, 1.0)), []).append(run)
    if not scales:
        return []
    best = max(scales.values(), key=lambda of: (of[0].timing == "measured", len(of)))
    latest: dict[tuple[str, int], RunRecord] = {}
    for run in sorted(best, key=lambda run: str(run.manifest["finished"])):
        latest[run.arm, run.seed] = run
    return list(latest.values())


def _scale(run: RunRecord, rate: float) -> str:
    dump = dict(run.manifest["run"])
    dump["learning_rate"] = float(f"{dump['learning_rate'] / rate:.6g}")
    if "context" in run.manifest:
        # Each seed refines its own weights.
        dump |= {"model": "checkpoint" if "checkpoint" in dump["model"] else dump["model"], "steps": dump["turns"]}
    return json.dumps([run.timing, [dump[key] for key in SCALE]], sort_keys=True)


def _ordered(runs: Sequence[RunRecord], arms: Sequence[str]) -> tuple[RunRecord, ...]:
    return tuple(sorted(runs, key=lambda run: (arms.index(run.arm), run.seed)))


def write_experiment(one: Found, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    draw(one.runs, directory / "figure.png", one.story.panels, one.story.axis)
    (directory / "numbers.json").write_text(json.dumps(numbers(one), separators=(",", ":")) + "\n", encoding="utf-8")
    manifests = [manifest(run) for run in one.runs]
    (directory / "manifests.json").write_text(json.dumps(manifests, indent=1) + "\n", encoding="utf-8")
    (directory / "README.md").write_text(page(one), encoding="utf-8")


def numbers(one: Found) -> dict[str, Any]:
    """Everything that the tables and the figure are made of."""
    return {
        "timing": common_timing(one.runs),
        "runs": [
            {
                "arm": run.arm,
                "seed": run.seed,
                "validation": _table(run.validation, [key for key in KEYS if all(key in row for row in run.validation)]),
                "training": _table(run.training, TRAIN_KEYS),
                "problems": {
                    str(step): {name: [_short(row[key]) for key in KEYS if key in row] for name, row in problems.items()}
                    for step, problems in run.outcomes.items()
                },
            }
            for run in one.runs
        ],
        "problems_columns": list(KEYS),
        "claims": [
            {**asdict(judged.claim), "verdict": str(judged.verdict), "reason": judged.reason, "adjusted_p": judged.adjusted_p}
            | {"difference": None if judged.difference is None else asdict(judged.difference)}
            for judged in one.judged
        ],
    }


def _table(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> dict[str, list[Any]]:
    """Column -> values, `step` first."""
    return {key: [_short(row.get(key)) for row in rows] for key in ("step", *keys)} if rows else {}


def _short(value: Any) -> Any:
    return round(value, 5) if isinstance(value, float) else value


def manifest(run: RunRecord) -> dict[str, Any]:
    """What ran, without the paths of the machine and with a hash in place of the list of problems."""
    found: dict[str, Any] = _without_paths(run.manifest)
    problems = json.dumps(run.manifest["run"]["problems"], sort_keys=True).encode()
    short = {"count": len(run.manifest["run"]["problems"]), "sha256": hashlib.sha256(problems).hexdigest()[:16]}
    return {**found, "run": {**found["run"], "problems": short}}


def _without_paths(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_paths(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_paths(item) for item in value]
    if isinstance(value, str) and value.startswith("/"):
        return "/".join(Path(value).parts[-3:])
    return value


def page(one: Found) -> str:
    """One experiment in Markdown."""
    arms = summarise(one.runs)
    timing = common_timing(one.runs)
    seeds = sorted({run.seed for run in one.runs})
    cards = sorted({card for run in one.runs for card in run.manifest["machine"]["gpus"]}) or ["no GPU"]
    lines = [f"# {one.story.title}", "", *_paragraphs(one.story.docstring)]
    lines += [
        f"{len(one.runs)} runs, seeds {', '.join(map(str, seeds))}, **{timing}** time, {', '.join(cards)}. Raw numbers: "
        "`numbers.json`; what ran: `manifests.json`. Generated by `python -m experiments.results`.",
        "",
        "![Validation curves](figure.png)",
        "",
        "## Verdicts",
        "",
        *claims_table(one.judged),
        "",
        RULE,
        "",
        *(f"- **{judged.claim.text}**: {sentence(judged)}" for judged in one.judged),
        "",
        f"## Arms, first to last {one.story.axis} measured",
        "",
        *arms_table(arms),
    ]
    return "\n".join([*lines, *_bands(one)]) + "\n"


def _paragraphs(docstring: str) -> list[str]:
    return [part for paragraph in docstring.split("\n\n") for part in (" ".join(paragraph.split()), "")]


def claims_table(judged: Sequence[Judged]) -> list[str]:
    lines = ["| claim | metric | difference [95 % interval] | adjusted p | verdict | the paper |", "|---|---|---|---|---|---|"]
    for found in judged:
        claim = found.claim
        p = "" if found.adjusted_p is None else f"{found.adjusted_p:.3f}"
        lines.append(
            f"| {claim.text} (`{claim.better}` against `{claim.worse}`) | `{claim.metric}` | {show_difference(found)} | {p} | "
            f"**{found.verdict}** | {claim.paper} |"
        )
    return lines


def sentence(judged: Judged) -> str:
    """What the rule made of the numbers."""
    difference = judged.difference
    if difference is None:
        return f"{judged.verdict}; {judged.reason}."
    seeds = "1 seed" if difference.seeds == 1 else f"{difference.seeds} seeds"
    text = f"{judged.verdict}: {judged.reason} ({show_difference(judged)} over {seeds}"
    if difference.bootstrap is not None and difference.problems is not None:
        low, high = difference.bootstrap.low, difference.bootstrap.high
        text += f"; drawing seeds and {difference.problems} problems again, [{low:+.3f}, {high:+.3f}]"
    return f"{text}). The paper: {judged.claim.paper}."


def arms_table(arms: Sequence[ArmSummary]) -> list[str]:
    lines = [f"| arm | seeds | {' | '.join(metric.label for metric in METRICS)} |", "|---" * (2 + len(METRICS)) + "|"]
    for arm in arms:
        cells = [f"{arm.first[m.key].show(m).split(' ±')[0]} → {arm.last[m.key].show(m)}" for m in METRICS]
        lines.append(f"| `{arm.arm}` | {len(arm.seeds)} | {' | '.join(cells)} |")
    return lines


def _bands(one: Found) -> list[str]:
    """The distribution of coverage of correct turns late in the runs, where outcomes were recorded."""
    rows = []
    for arm, runs in by_arm(one.runs).items():
        found = [
            c
            for run in runs
            for step in (LATE.choose(sorted(run.outcomes)) if run.outcomes else ())
            for problem in run.outcomes[step].values()
            for c in problem.get(COVERAGES, ())
        ]
        if found:
            shares = [f"{100 * sum(low <= c < high for c in found) / len(found):.0f} %" for low, high in BANDS]
            rows.append(f"| `{arm}` | {len(found)} | {' | '.join(shares)} |")
    if not rows:
        return []
    head = " | ".join(f"{low:g} to {min(high, 1):g}" for low, high in BANDS)
    return [
        "",
        "## Coverage of correct turns, late half",
        "",
        f"| arm | turns | {head} |",
        "|---" * (2 + len(BANDS)) + "|",
        *rows,
    ]


def overview(found: Sequence[Found]) -> str:
    """The page that puts the claims together."""
    judged = [(one, verdict) for one in found for verdict in one.judged]
    counts = Counter(verdict.verdict for _, verdict in judged)
    missing = [name for name in (*NAMES, "test_time_scaling") if name not in {one.name for one in found}]
    timings = sorted({common_timing(one.runs) for one in found})
    lines = [
        "# Results",
        "",
        "The papers' claims (Dr. Kernel, arXiv 2602.05885; TritonRL, arXiv 2510.17891) with a small policy trained from scratch: "
        f"the scale is a miniature, the mechanisms are the real ones. All times are **{' and '.join(timings)}**. Generated by "
        "`python -m experiments.results` from finished runs.",
        "",
        ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
        + f", of {len(judged)} claims."
        + (f" Without finished runs: {', '.join(missing)}." if missing else ""),
        "",
        RULE,
        "",
        "The best kernels of the best run: [kernels.md](kernels.md).",
    ]
    for one in found:
        lines += ["", f"## [{one.story.title}]({one.name}/README.md)", "", *claims_table(one.judged)]
    return "\n".join(lines) + "\n"


def kernels_page(best: RunRecord | None, kernels: Sequence[Kernel]) -> str:
    """Source, speedup with its interval, coverage and the reference's bottleneck."""
    if best is None or not kernels:
        return "# Best kernels\n\nNo correct kernel was kept as text.\n"
    lines = [
        "# Best kernels",
        "",
        f"Of `{best.arm}`, seed {best.seed}, the run with the highest late Fast@1.2; one per problem, by the lower bound of the "
        "speedup, of the trajectories that were kept as text.",
    ]
    for kernel in kernels:
        lines += [
            "",
            f"## {kernel.problem}: {kernel.speedup_text()}",
            "",
            f"Coverage {100 * kernel.coverage:.0f} %; {kernel.split} split, step {kernel.step}; bottleneck of the reference: "
            f"{kernel.bottleneck or 'not known'}.",
            "",
            "````python",
            kernel.code.strip("\n"),
            "````",
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
