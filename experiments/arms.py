"""The arms of all experiments, each once, and the scales at which they run.

An arm that several claims need is the same value here, so it has one directory and is trained once. The values are those of the
`h200` preset; `cpu` and `paper` change sizes, never what an arm is about.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from algorithms import TABLES
from algorithms.dr_grpo import DrGRPO
from algorithms.grpo import GRPO
from algorithms.held_out import HeldOut
from algorithms.hrd import HRD
from algorithms.layered_reward import LayeredReward
from algorithms.mis import MIS
from algorithms.mrs import MRS
from algorithms.pr import PR
from algorithms.prs import PRS
from algorithms.rloo import RLOO
from algorithms.tis import TIS
from algorithms.trloo import TRLOO
from algorithms.unchecked_reward import UncheckedReward
from algorithms.uniform_credit import UniformCredit
from envs.problems import family_of, load_suite
from envs.world.suite import world_problems
from experiments import paper_scale
from experiments.world.source import TWO
from rlkernel.commands.asked import Preset
from rlkernel.commands.experiment import Experiment
from rlkernel.config import Run
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.errors import UsageError
from rlkernel.report.claims import Claim
from rlkernel.report.curves import PANELS, Panel
from rlkernel.report.report import Story
from rlkernel.settings import Optimiser, Stop

MEDIUM = Path("runs/policy")
WORLD = Path("runs/world_policy")
WORLD_SHOWN = Path("runs/world_shown_policy")
WORLD_SMALL = Path("rlkernel/policy/small_world")
MINIATURE = (
    "A scripted teacher taught the policy to hack, to be lazy and, seldom, to fuse: a third of the teacher's first drafts "
    "are hacks.",
    "Training weighs this repertoire, at 0.017 nats per token, and discovers nothing new.",
    "The policy knows one family of problems, chains of elementwise operations.",
    "39 of its problems train the policy and 13 measure it.",
    "Nearly all problems are solved after 16 steps, so arms can differ only on the way.",
    "Times are measured anew on every card, and a kernel of about the reference's speed falls on either side of 1 by the card.",
    "Fast@1 before training therefore differs by 12 to 15 points between cards (at most 1 on one card), Fast@1.2 by at most 4.",
    "Arms of equal seed shared a card for seeds 0 to 3 of the first arms only.",
    "The learning rate was chosen by one probe of TRLOO.",
    "The arms `capped*` and `hot*` and seeds 4 and 5 were added after a look at the first four seeds; these arms and their "
    "claims were written down before they ran.",
    "Test-time scaling refines the policy before training (`--model runs/policy`), and its rewards contain PR's bonus.",
    "The runs used torch 2.11 and triton 3.6, older than the pinned versions.",
    "The runs were made in copies without a repository, and their commits were written into the manifests afterwards.",
)
"""What a reader of the h200 preset's results should keep in mind (docs/results), a sentence each."""
MAKE = (MEDIUM, "python -m experiments.cold_start --size medium")
"""The policy of the h200 preset, and the command that makes it."""

BASE = Run(
    name="trloo",
    # The small policy knows no other family.
    problems=tuple(problem for problem in load_suite() if family_of(problem) == "chain"),
    environment=KernelEnvironment(style="short"),
    reward=SpeedReward(),
    advantage=TRLOO(),
    credit=UniformCredit(),
    model=str(MEDIUM),
    turns=3,
    max_new_tokens=256,
    prompts_per_step=8,
    rollouts=8,
    steps=16,
    learning_rate=1e-4,
    validation_every=4,
    validation_rollouts=8,
)

# Estimators: the baseline is all that differs. One turn has three times the prompts, so that a step sees as many answers.
TRLOO_ARM = BASE
GRPO_ARM = replace(BASE, name="grpo", advantage=GRPO())
RLOO_ARM = replace(BASE, name="rloo", advantage=RLOO())
DR_GRPO_ARM = replace(BASE, name="dr_grpo", advantage=DrGRPO())
GRPO_SINGLE_TURN = replace(BASE, name="grpo_single_turn", advantage=GRPO(), turns=1, prompts_per_step=24, validation_turns=3)
GRPO_SINGLE_TURN_PROMPTS = replace(GRPO_SINGLE_TURN, name="grpo_single_turn_prompts", prompts_per_step=BASE.prompts_per_step)

# The same with smaller and larger groups, and as many answers in a step.
ESTIMATORS = (GRPO_ARM, TRLOO_ARM, RLOO_ARM, DR_GRPO_ARM)
K4 = {run.name: replace(run, name=f"{run.name}_k4", rollouts=4, prompts_per_step=16) for run in ESTIMATORS}
K16 = {run.name: replace(run, name=f"{run.name}_k16", rollouts=16, prompts_per_step=4) for run in ESTIMATORS}

# Trajectories that end once they are fast, so that groups shrink with the turn.
GRPO_STOP, TRLOO_STOP = (replace(run, name=f"{run.name}_stop", stop=Stop(speedup=1.2)) for run in (GRPO_ARM, TRLOO_ARM))

# The same by plain gradient descent, where nothing takes a factor out of the step.
PLAIN = {"optimiser": Optimiser("sgd"), "max_grad_norm": 0.0, "learning_rate": 1e4 * BASE.learning_rate}
SGD = {name: replace(K4[name], name=f"{name}_k4_sgd", **PLAIN) for name in ("grpo", "trloo", "dr_grpo")}  # type: ignore[arg-type]

# The hacking check, as the reward sees it.
UNCHECKED = replace(BASE, name="unchecked", reward=UncheckedReward())
WEAK_CHECK = replace(BASE, name="weak_check", reward=UncheckedReward(launched=True))

# The same where speed beyond the reference pays nothing, so that a hack is worth as much as any kernel.
CAPPED = replace(BASE, name="capped", reward=SpeedReward(cap=1.0))
CAPPED_UNCHECKED = replace(BASE, name="capped_unchecked", reward=UncheckedReward(cap=1.0))

# The recipe, one ingredient after the other.
MRS_ARM = replace(BASE, name="trloo_mrs", corrections=(MRS(),))
MRS_PR = replace(MRS_ARM, name="trloo_mrs_pr", reward=PR())
MRS_PRS = replace(MRS_ARM, name="trloo_mrs_prs", corrections=(MRS(), PRS()))
MRS_PR_PRS = replace(MRS_PR, name="trloo_mrs_pr_prs", corrections=(MRS(), PRS()))

# The whole recipe without matrix products, which the policy of the preset `world` knows from its cold start.
PRODUCTS = "/product_"
"""A part of the names of the problems of the family `product`; those of `mixed` hold a product, too."""
WITHOUT_PRODUCTS = replace(MRS_PR_PRS, name="recipe_without_products", sampler=HeldOut((PRODUCTS, "/mixed_")))

# The last step of the recipe where lazy kernels are as good as any, so that coverage stays low without it.
CAPPED_MRS = replace(CAPPED, name="capped_mrs", corrections=(MRS(),))
CAPPED_MRS_PRS = replace(CAPPED_MRS, name="capped_mrs_prs", corrections=MRS_PRS.corrections)

# Rollouts from weights of eight bits, and from weights that are one update old.
FLOAT8 = replace(BASE, name="float8", rollout_dtype="float8")
FLOAT8_MRS = replace(FLOAT8, name="float8_mrs", corrections=(MRS(),))
STALE = replace(BASE, name="stale", staleness=1)
STALE_MRS = replace(STALE, name="stale_mrs", corrections=(MRS(low=0.99, high=1.01),))
HOT = replace(BASE, name="hot", learning_rate=5 * BASE.learning_rate)
HOT_STALE = replace(HOT, name="hot_stale", staleness=1)
HOT_STALE_MRS = replace(HOT_STALE, name="hot_stale_mrs", corrections=STALE_MRS.corrections)

# The same gaps, and weights of two steps before, with weights instead of rejections.
FLOAT8_TIS = replace(FLOAT8, name="float8_tis", corrections=(TIS("sequence"),))
FLOAT8_MIS = replace(FLOAT8, name="float8_mis", corrections=(MIS(),))
HOT_AGE2 = replace(HOT, name="hot_age2", staleness=2)
HOT_AGE2_TIS = replace(HOT_AGE2, name="hot_age2_tis", corrections=FLOAT8_TIS.corrections)
HOT_AGE2_MIS = replace(HOT_AGE2, name="hot_age2_mis", corrections=FLOAT8_MIS.corrections)
HOT_AGE2_TIS_TOKEN = replace(HOT_AGE2, name="hot_age2_tis_token", corrections=(TIS(),))
HOT_AGE2_MIS_SEQUENCE = replace(HOT_AGE2, name="hot_age2_mis_sequence", corrections=(MIS("sequence", high=2.0),))
HOT_AGE2_MRS = replace(HOT_AGE2, name="hot_age2_mrs", corrections=STALE_MRS.corrections)

# The same at twice the rate: five times the usual one destroys the policy of the preset `world`, with fresh samples, too.
WARM = replace(BASE, name="warm", learning_rate=2 * BASE.learning_rate)
WARM_AGE2, WARM_AGE2_TIS, WARM_AGE2_MRS = (
    replace(run, name=run.name.replace("hot", "warm"), learning_rate=WARM.learning_rate)
    for run in (HOT_AGE2, HOT_AGE2_TIS, HOT_AGE2_MRS)
)

# What is missing of both gaps at both learning rates, each with nothing, TIS and MRS.
AGE2, AGE2_TIS, AGE2_MRS = (
    replace(run, name=run.name.removeprefix("hot_"), learning_rate=BASE.learning_rate)
    for run in (HOT_AGE2, HOT_AGE2_TIS, HOT_AGE2_MRS)
)
HOT_FLOAT8, HOT_FLOAT8_TIS, HOT_FLOAT8_MRS = (
    replace(run, name=f"hot_{run.name}", learning_rate=HOT.learning_rate) for run in (FLOAT8, FLOAT8_TIS, FLOAT8_MRS)
)

# Credit, in one turn. The uniform arm is paid through the same layers of verification.
UNIFORM = replace(GRPO_SINGLE_TURN, name="uniform_single_turn", reward=LayeredReward(), validation_turns=0)
HRD_01, HRD_05, HRD_1 = (
    replace(UNIFORM, name=f"hrd_{alpha:g}_single_turn", credit=HRD(alpha=alpha)) for alpha in (0.1, 0.5, 1.0)
)


def by_name(*runs: Run) -> Mapping[str, Run]:
    """The `ARMS` of an experiment, in order; the first is the baseline. Raises UsageError for two of one name, of which the
    second would replace the first."""
    found: dict[str, Run] = {}
    for run in runs:
        if run.name in found:
            raise UsageError(f"two arms are called {run.name!r}: give the second a name=")
        found[run.name] = run
    return found


def experiment(
    name: str, docstring: str | None, arms: Mapping[str, Run], claims: tuple[Claim, ...], panels: tuple[Panel, ...] = PANELS
) -> Experiment:
    """Make an experiment with all presets and registered methods. `name` is that of its module."""
    story = Story(name.replace("_", " ").capitalize(), docstring or "", claims, panels)
    # Imported late, because the list of experiments imports every experiment.
    sharing = lambda arms: importlib.import_module("experiments.catalogue").sharing(name, arms)  # noqa: E731
    return Experiment(name, arms, PRESETS, story, TABLES, sharing)


def same(run: Run) -> Run:
    """The h200 preset: every arm as it stands in this file."""
    return run


def cpu(run: Run) -> Run:
    """The cpu preset: modelled time, the shipped policy, half the rollouts and six steps, after which the small policy has
    learnt what it will; what a longer run would take goes into a third seed."""
    sizes = {"rollouts": run.rollouts // 2, "steps": 6, "validation_every": 3, "validation_rollouts": 2}
    return replace(run, device="cpu", model="small", learning_rate=10 * run.learning_rate, **sizes)  # type: ignore[arg-type]


def world(run: Run) -> Run:
    """The world preset: all families of `envs/world`, and a policy that has seen conversations of up to eight turns. A speedup
    that is known to 5 % is enough for means over hundreds of them."""
    sizes = {"max_new_tokens": 512, "steps": 48, "validation_every": 12, "validation_rollouts": 4, "timing_width": 0.05}
    return replace(run, problems=world_problems(), model=str(WORLD), **sizes)  # type: ignore[arg-type]


def world_shown(run: Run) -> Run:
    """The world_shown preset: the world, and a policy whose cold start has been shown some of the family that training never
    shows."""
    return replace(world(run), model=str(WORLD_SHOWN))


def world_cpu(run: Run) -> Run:
    """The world_cpu preset: two families of `envs/world` in modelled time, and the small policy that knows them. At the learning
    rate of `cpu` that policy loses half of its reward in six steps."""
    sizes = {"problems": world_problems(TWO), "model": str(WORLD_SMALL), "max_new_tokens": 512}
    return replace(cpu(run), learning_rate=3 * run.learning_rate, **sizes)  # type: ignore[arg-type]


PRESETS: Mapping[str, Preset] = {
    "cpu": Preset("modelled time, reduced size: a check of the code", cpu, seeds=(0, 1, 2), together=2),
    "h200": Preset(
        "measured time on a GPU, a policy of 21 million parameters", same, seeds=tuple(range(6)), gpu=True, policy=MAKE
    ),
    "world": Preset(
        "measured time on a GPU, problems of many families, a policy of 80 million parameters",
        world,
        seeds=tuple(range(6)),
        gpu=True,
        policy=(WORLD, "python -m experiments.cold_start --world h200"),
    ),
    "world_shown": Preset(
        "measured time on a GPU, the world, and a policy that has been shown the family which training never shows",
        world_shown,
        seeds=tuple(range(6)),
        gpu=True,
        policy=(WORLD_SHOWN, "python -m experiments.cold_start --world h200_shown"),
    ),
    "world_cpu": Preset(
        "modelled time, problems of two families",
        world_cpu,
        seeds=(0, 1),
        together=2,
        policy=(WORLD_SMALL, "python -m experiments.cold_start --world cpu"),
    ),
    "paper": Preset(
        "the papers' models and hyperparameters",
        paper_scale.adapt,
        seeds=(0,),
        gpu=True,
        estimate=paper_scale.estimate,
        rehearse=paper_scale.rehearse,
    ),
}
