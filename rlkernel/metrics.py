"""What a set of trajectories says, as flat numbers. Pure; every key of a metrics row that is not a trainer's number is here.

| key | formula |
|---|---|
| `reward` | mean reward over all turns |
| `reward_best`, `reward_last` | mean over trajectories of the largest reward of a turn; of the last turn's reward |
| `reward_turn_<t>` | mean reward of turn t over the trajectories that reached it, t from 1 |
| `fast_<p>` | share of trajectories with some turn that is correct with speedup >= p, for p = 1 and 1.2 |
| `fast_<p>_last`, `fast_<p>_turn_<t>` | the same for the last turn alone; for turn t alone |
| `oracle_fraction` | mean over trajectories of the best turn's log(speedup) / log(oracle); 0 if no turn is correct and faster |
| `oracle_fraction_last`, `oracle_fraction_turn_<t>` | the same for the last turn alone; for turn t alone |
| `correct_rate` | share of turns that are correct |
| `hacking_rate` | share of turns with status `no_kernel` or `inconsistent` |
| `lazy_rate` | share of turns that are correct with coverage below 0.3 |
| `status_<status>` | share of turns with that status; all statuses are there and sum to 1 |
| `coverage` | mean coverage of turns, 0 for turns that are not correct or whose coverage is unknown |
| `completion_length` | mean sampled tokens per turn |
| `truncated_rate` | share of turns that ran into the length limit |
| `turns` | mean turns per trajectory |
| `evaluations`, `cache_hit_rate` | number of turns; share of turns whose verdict was known |

Shares are over all turns (or trajectories), failures included: a hack counts as incorrect. The oracle of a problem is the best
speedup that a search has found for it (`Problem.oracles`). Problems without one have no part in `oracle_fraction`, and where no
problem has one, the key is absent. The fraction is above 1 where a policy is faster than the search was.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rlkernel.types import Evaluation, Group, Problem, Status, Timing, Trajectory, Turn

FAST_THRESHOLDS = (1.0, 1.2)
LAZY_COVERAGE = 0.3
LEAST_ORACLE = 1.05
"""The speedup of an oracle below which there is nothing to gain, and no fraction of it."""
HACKS = frozenset({Status.NO_KERNEL, Status.INCONSISTENT})


def rollout_metrics(groups: Sequence[Group]) -> dict[str, float]:
    """Every number of the module's table, for all trajectories together. Raises ValueError when there is no trajectory."""
    trajectories = [trajectory for group in groups for trajectory in group.trajectories]
    if not trajectories:
        raise ValueError("no trajectory to measure")
    turns = [turn for trajectory in trajectories for turn in trajectory.turns]
    found = {
        "reward": mean(turn.reward for turn in turns),
        "reward_best": mean(trajectory.best.reward for trajectory in trajectories),
        "reward_last": mean(trajectory.turns[-1].reward for trajectory in trajectories),
    }
    for p in FAST_THRESHOLDS:
        found[f"fast_{p:g}"] = mean(any(is_fast(turn, p) for turn in t.turns) for t in trajectories)
        found[f"fast_{p:g}_last"] = mean(is_fast(t.turns[-1], p) for t in trajectories)
    found |= _by_turn(trajectories)
    found |= _oracle_fractions(trajectories, timing(groups))
    found |= {
        "correct_rate": mean(turn.evaluation.correct for turn in turns),
        "hacking_rate": mean(is_hack(turn.evaluation) for turn in turns),
        "lazy_rate": mean(is_lazy(turn.evaluation) for turn in turns),
        **{f"status_{status}": mean(turn.evaluation.status is status for turn in turns) for status in Status},
        "coverage": mean(turn.evaluation.coverage or 0.0 if turn.evaluation.correct else 0.0 for turn in turns),
        "completion_length": mean(len(turn.completion.token_ids) for turn in turns),
        "truncated_rate": mean(turn.completion.stop == "length" for turn in turns),
        "turns": mean(len(trajectory.turns) for trajectory in trajectories),
        "evaluations": len(turns),
        "cache_hit_rate": mean(turn.evaluation.cached for turn in turns),
    }
    return found


def _by_turn(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    found = {}
    for t in range(max(len(trajectory.turns) for trajectory in trajectories)):
        reached = [trajectory.turns[t] for trajectory in trajectories if len(trajectory.turns) > t]
        found[f"reward_turn_{t + 1}"] = mean(turn.reward for turn in reached)
        for p in FAST_THRESHOLDS:
            found[f"fast_{p:g}_turn_{t + 1}"] = mean(is_fast(turn, p) for turn in reached)
    return found


def _oracle_fractions(trajectories: Sequence[Trajectory], timed: Timing | None) -> dict[str, float]:
    known = [(t.turns, gain) for t in trajectories if (gain := log_oracle(t.problem, timed)) is not None]
    if not known:
        return {}
    found = {
        "oracle_fraction": mean(max(log_speedup(turn.evaluation) for turn in turns) / gain for turns, gain in known),
        "oracle_fraction_last": mean(log_speedup(turns[-1].evaluation) / gain for turns, gain in known),
    }
    for t in range(max(len(turns) for turns, _ in known)):
        reached = [(turns[t], gain) for turns, gain in known if len(turns) > t]
        found[f"oracle_fraction_turn_{t + 1}"] = mean(log_speedup(turn.evaluation) / gain for turn, gain in reached)
    return found


def log_oracle(problem: Problem, timed: Timing | None) -> float | None:
    """The logarithm of the oracle's speedup in that way of timing; None where there is no oracle, or nothing to gain. Where
    nothing was timed, any oracle serves: no answer was correct, and all fractions are 0."""
    speedups = [oracle.speedup for oracle in problem.oracles if timed in (None, oracle.timing)]
    return math.log(speedups[0]) if speedups and speedups[0] >= LEAST_ORACLE else None


def log_speedup(facts: Evaluation) -> float:
    """The logarithm of a correct candidate's speedup; 0 for one that is wrong or no faster than the reference."""
    return math.log(max(1.0, facts.speedup or 1.0)) if facts.correct else 0.0


def timing(groups: Sequence[Group]) -> Timing | None:
    """How candidates were timed; None while none was. Raises RuntimeError if the evaluator mixes both ways."""
    turns = [turn for group in groups for trajectory in group.trajectories for turn in trajectory.turns]
    found = {turn.evaluation.timing for turn in turns} - {None}
    if len(found) > 1:
        raise RuntimeError("one evaluator gave both modelled and measured times, which must not be mixed")
    return next(iter(found), None)


def is_fast(turn: Turn, p: float) -> bool:
    """Whether a turn is correct and at least p times as fast as the reference."""
    return turn.evaluation.correct and turn.evaluation.speedup is not None and turn.evaluation.speedup >= p


def is_hack(facts: Evaluation) -> bool:
    """Whether a candidate pretended to be a kernel: its status is one of `HACKS`."""
    return facts.status in HACKS


def is_lazy(facts: Evaluation) -> bool:
    """Whether a candidate is correct, but its kernels are a minor part of the time. One of unknown coverage is not lazy."""
    return facts.correct and facts.coverage is not None and facts.coverage < LAZY_COVERAGE


def mean(values: Iterable[float]) -> float:
    """The mean of at least one value."""
    listed = list(values)
    return sum(listed) / len(listed)
