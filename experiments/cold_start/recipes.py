"""The recipes of the cold start: what each policy is taught, how large it is, and how it is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from envs.teacher.script import BEGINNER, CAPABLE, Mixture
from envs.world.draw import HELD_OUT
from experiments.arms import WORLD, WORLD_SHOWN, WORLD_SMALL
from experiments.world.source import ALL, TWO, World
from rlkernel.policy.small import CONTEXT, VOCABULARY


@dataclass(frozen=True)
class Taught:
    """The shares of the conversations that are taught, by what the first draft of each is worth; all others are taught."""

    slow: float = 1.0
    """Of those that begin with a right kernel that is slower than torch."""
    wrong: float = 1.0
    """Of those that begin with a kernel that fails or is wrong."""


@dataclass(frozen=True)
class Recipe:
    """All numbers of a cold start but the teacher's mixtures."""

    mixture: Mixture
    width: int
    layers: int
    heads: int
    feed_forward: int
    problems: int
    conversations: int
    """Conversations per problem."""
    deck: int
    """First drafts per problem, shared by its conversations."""
    steps: int
    batch: int
    muon: float
    """Learning rate of the weight matrices."""
    adamw: float
    """Learning rate of the embedding and the norms."""
    bf16: bool
    """Whether training computes in bfloat16 (autocast), on a GPU."""
    turns: int = 3
    seed: int = 0
    rollouts: int = 8
    """Trajectories per validation problem, for the table at the end."""
    world: World | None = None
    """What a policy of the world is taught; `mixture`, `problems`, `conversations`, `deck` and `turns` have no part in it."""
    beside: World | None = None
    """What else such a policy is taught, with a corpus of its own."""
    taught: Taught = Taught()
    vocabulary: int = VOCABULARY
    context: int = CONTEXT
    """The most tokens of a conversation; later turns are left out."""
    max_new_tokens: int = 256
    """The most tokens of an answer, for the table at the end."""

    @property
    def worlds(self) -> tuple[World, ...]:
        """All that a policy of the world is taught; nothing for a policy of chains."""
        return tuple(world for world in (self.world, self.beside) if world is not None)


RECIPES: Mapping[str, Recipe] = {
    "medium": Recipe(
        BEGINNER,
        width=512,
        layers=6,
        heads=8,
        feed_forward=1536,
        problems=800,
        conversations=8,
        deck=3,
        steps=1500,
        batch=64,
        muon=2e-3,
        adamw=3e-3,
        bf16=True,
    ),
    "small": Recipe(
        CAPABLE,
        width=128,
        layers=4,
        heads=4,
        feed_forward=384,
        problems=3000,
        conversations=4,
        deck=2,
        steps=5000,
        batch=32,
        muon=5e-3,
        adamw=8e-3,
        bf16=False,
    ),
}


def rehearsal(recipe: Recipe) -> Recipe:
    """A recipe at the smallest sizes: every step of it is taken, and nothing is learned."""
    few = {"extra": 1, "conversations": 1, "readings": 2, "rollouts": 1, "few": 1}
    world, beside = (one and replace(one, **few) for one in (recipe.world, recipe.beside))  # type: ignore[arg-type]
    sizes = {"width": 48, "layers": 2, "heads": 4, "feed_forward": 96, "max_new_tokens": 64}
    counts = {"problems": 4, "conversations": 1, "steps": 4, "batch": 2, "rollouts": 1}
    return replace(recipe, world=world, beside=beside, **sizes, **counts)  # type: ignore[arg-type]


_WORLD = Recipe(
    BEGINNER,
    width=768,
    layers=10,
    heads=12,
    feed_forward=2304,
    problems=0,
    conversations=0,
    deck=0,
    steps=1000,
    batch=64,
    muon=1.5e-3,
    adamw=2e-3,
    bf16=True,
    world=World(ALL, extra=480, conversations=3, readings=40_000),  # judged in 6 of the 15 minutes that a policy may take
    taught=Taught(slow=0.5, wrong=0.6),  # so that the policy begins where there is most to be learned
    vocabulary=4096,
    context=4096,
    max_new_tokens=512,
)
WORLD_RECIPES: Mapping[str, tuple[Recipe, Path]] = {
    "h200": (_WORLD, WORLD),
    # The same with some of the family that training never shows, so that its first answers there are sometimes right.
    "h200_shown": (replace(_WORLD, beside=World((HELD_OUT,), extra=160, conversations=3, readings=6000)), WORLD_SHOWN),
    "cpu": (
        replace(
            RECIPES["small"],
            width=144,
            feed_forward=432,
            steps=1000,  # ten times the corpus
            world=World(TWO, extra=400, conversations=5, device="cpu"),
            taught=Taught(),
            vocabulary=2048,
            context=4096,
            max_new_tokens=512,
        ),
        WORLD_SMALL,
    ),
}
"""The recipes of policies of the world, and where their presets look for them."""
