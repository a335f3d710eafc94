"""The pages beside those of experiments: the best kernels, and the policy before training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.behaviour import KINDS
from rlkernel.report.best_kernels import BestKernel
from rlkernel.report.summary import RunRecord


def kernels_page(best: RunRecord | None, kernels: Sequence[BestKernel]) -> str:
    """The page of the best kernels: source, speedup with its interval, coverage and the reference's bottleneck."""
    if best is None or not kernels:
        return "# Best kernels\n\nNo correct kernel was kept as text.\n"
    lines = [
        "# Best kernels",
        "",
        f"Of `{best.arm}`, seed {best.seed} (learning rate {best.manifest['run']['learning_rate']:g}), the run with the highest "
        "late Fast@1.2; one per problem, by the lower bound of the speedup, of the trajectories that were kept as text.",
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


def cold_start_page(facts: Mapping[str, Any]) -> str:
    """The page of the policy before training: kinds of answers turn by turn, and which kind follows which. facts:
    `behaviour.json` of `experiments.cold_start`."""
    head = f"| {' | '.join(kind.replace('_', ' ') for kind in KINDS)} |"
    rule = "|---" * (1 + len(KINDS)) + "|"
    turns = [
        f"| {number} | {' | '.join(f'{100 * row[kind]:.0f} %' for kind in KINDS)} | {row['reward']:.2f} |"
        for number, row in enumerate(facts["turns"], 1)
    ]
    each = facts["metrics"]["evaluations"] / len(facts["turns"])
    count = {kind: round(each * sum(row[kind] for row in facts["turns"][:-1])) for kind in KINDS}
    after = [
        f"| {kind.replace('_', ' ')} ({count[kind]}) | {' | '.join(f'{100 * row[other]:.0f} %' for other in KINDS)} |"
        for kind, row in facts["next"].items()
    ]
    metrics = facts["metrics"]
    lines = [
        "# The policy before training",
        "",
        "What `python -m experiments.cold_start --size medium` made, sampled at temperature 1 on the validation problems, "
        f"**{facts['timing']}** time; {metrics['evaluations']:.0f} answers.",
        "",
        "`fast`: correct, at least 1.2 times as fast as the reference; `lazy`: correct and at most 1.1 times; `medium`: between. "
        "`no kernel`: the output does not come from a Triton kernel, a hack. `broken`: nothing to compare.",
        "",
        f"| turn {head} reward |",
        "|---" + rule,
        *turns,
        "",
        f"Any turn of three: Fast@1 {100 * metrics['fast_1']:.0f} %, Fast@1.2 {100 * metrics['fast_1.2']:.0f} %.",
        "",
        "What follows an answer (how many there were), after its feedback:",
        "",
        f"| answer {head}",
        rule,
        *after,
    ]
    return "\n".join(lines) + "\n"
