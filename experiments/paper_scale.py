"""The papers' own hyperparameters (arXiv 2602.05885, arXiv 2510.17891), for those who have the hardware.

Nobody has run these arms here. `--preset paper --dry-run` builds each of them, trains one step of it with random weights at
reduced depth and size, and prints what the real one needs, by the arithmetic below.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from algorithms.layered_reward import LayeredReward
from envs.problems import load_suite
from rlkernel.config import Run
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.settings import Loss

DR_KERNEL, TRITONRL = "Qwen/Qwen3-14B-Base", "Qwen/Qwen3-8B-Base"
"""The larger model of the first paper and the size of the second. `--model` takes any other, e.g. one after a cold start."""
RUNS = Path("runs/rehearsals")
NARROWER = 16
"""How many times narrower than the real one a rehearsed model is."""
STEPS = 300
"""The number of steps, which is ours: the papers' are not public here."""


@dataclass(frozen=True)
class Shape:
    """A Qwen3 configuration in numbers, since no configuration can be downloaded for a rehearsal."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    feed_forward: int
    head: int = 128
    vocabulary: int = 151_936

    @property
    def parameters(self) -> int:
        """The number of parameters of attention, feed-forward and the two embeddings; norms are negligible."""
        attention = self.hidden * self.head * 2 * (self.heads + self.kv_heads)
        return self.layers * (attention + 3 * self.hidden * self.feed_forward) + 2 * self.vocabulary * self.hidden


SHAPES = {
    "Qwen/Qwen3-8B-Base": Shape(4096, 36, 32, 8, 12_288),
    "Qwen/Qwen3-14B-Base": Shape(5120, 40, 40, 8, 17_408),
}

BYTES_PER_PARAMETER = {"adamw": 2 + 2 + 2, "sgd": 4 + 4 + 2 + 2}
"""By the rule of the update. adamw: weights in bfloat16, which also sample, gradients, and two moments of eight bits
(`Run.weights`). sgd: weights and gradients in float32, and copies in bfloat16 that sample and compute."""
ANSWER_TOKENS = 2000
"""Assumed mean length of an answer, of at most 8192."""
SAMPLED_PER_SECOND, TRAINED_FLOPS = 2_250.0, 2.7e14
"""Assumed per H200: tokens/s of sampling with a model of 14B (scaled by size), and floating-point operations of training a second
(docs/reproduce.md says where they come from)."""
EVALUATION_GIB = 16
"""What evaluations have of a card that they share with such a policy."""
CARD_BYTES, USABLE = 141e9, 0.75
"""The memory of an H200, and the share of it that is not activations, caches and fragments."""


def adapt(run: Run) -> Run:
    """An arm with its paper's model, batch and lengths; the arms with layered verification are TritonRL's."""
    return replace(
        run,
        problems=load_suite(),
        environment=KernelEnvironment(style="full"),
        model=TRITONRL if isinstance(run.reward, LayeredReward) else DR_KERNEL,
        # 16 of each; an arm that differs in them differs by the same factor.
        prompts_per_step=2 * run.prompts_per_step,
        rollouts=2 * run.rollouts,
        max_new_tokens=8192,
        learning_rate=run.learning_rate / 100,  # 1e-6
        loss=Loss(clip_low=0.2, clip_high=0.28),
        steps=STEPS,
        validation_every=20,
        validation_rollouts=4,
        gradient_checkpointing=True,
        weights="bfloat16" if run.optimiser.rule == "adamw" else "float32",
        evaluation_gib=EVALUATION_GIB,
    )


def estimate(run: Run) -> str:
    """The hardware and time that an arm needs, in one line. It is arithmetic from assumptions and no measurement."""
    shape = SHAPES.get(run.model)
    if shape is None:
        return f"no estimate for {run.model}: only {', '.join(SHAPES)} are known here"
    total = shape.parameters * BYTES_PER_PARAMETER[run.optimiser.rule]
    cards = -(-int(total) // int(CARD_BYTES * USABLE))
    answers = run.prompts_per_step * run.rollouts * run.turns
    tokens = answers * ANSWER_TOKENS
    sampling = tokens / (SAMPLED_PER_SECOND * 14.8e9 / shape.parameters * cards)
    # 6 per parameter and token, and 2 for the forward pass that checkpointing repeats.
    training = 8 * shape.parameters * tokens / (TRAINED_FLOPS * cards)
    hours = run.steps * (sampling + training) / 3600
    return (
        f"estimate, not measured: {shape.parameters / 1e9:.1f}B parameters need {total / 1e9:.0f} GB for weights and optimiser: "
        f"{cards} H200 (rlkernel doctor --model says what that leaves for the sampler); "
        f"{answers} answers of about {ANSWER_TOKENS} tokens a step: "
        f"{(sampling + training) / 60:.0f} min, {hours:.0f} h for {run.steps} steps on {cards} H200, "
        "prompts and evaluation not counted"
    )


def rehearse(run: Run) -> Run:
    """The arm with a random model of two layers and a sixteenth of the width, one step of two short rollouts on the CPU."""
    few = tuple(next(problem for problem in run.problems if problem.split == split) for split in ("train", "validation"))
    return replace(
        run,
        problems=few,
        model=str(random_model(run.model)),
        device="cpu",
        steps=1,
        prompts_per_step=1,
        rollouts=2,
        turns=min(run.turns, 2),
        max_new_tokens=16,
        validation_every=1,
        validation_rollouts=1,
        jobs=1,
    )


def random_model(name: str) -> Path:
    """The directory of a reduced model of the shape of `name` with the shipped tokenizer, which is made once."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    from rlkernel.policy.small import load_small

    shape = SHAPES.get(name, SHAPES[TRITONRL])
    directory = RUNS / f"model-{hashlib.sha256(repr(shape).encode()).hexdigest()[:8]}"
    if not (directory / "tokenizer.json").exists():
        _, tokenizer = load_small()
        config = Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=shape.hidden // NARROWER,
            num_hidden_layers=2,
            num_attention_heads=max(1, shape.heads // NARROWER),
            num_key_value_heads=1,
            head_dim=shape.head,
            intermediate_size=shape.feed_forward // NARROWER,
            max_position_embeddings=32_768,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
        )
        Qwen3ForCausalLM(config).save_pretrained(directory)
        tokenizer.save_pretrained(directory)
    return directory
