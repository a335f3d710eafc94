"""Print the table of docs/larger.md: what full and adapter training of the published shapes is predicted to take of an H200.

    python -m benchmarks.memory

Nothing is loaded and no GPU is needed. The card's memory is the one that torch reports for an H200; evaluations share it, and the
policy may take what `rlkernel.training.placement` leaves. `python -m benchmarks.full_size` measures one row.
"""

from __future__ import annotations

from dataclasses import dataclass

from transformers import Qwen3Config

from benchmarks.shapes import SHAPES
from rlkernel.evaluator.cards.gpus import Gpu
from rlkernel.evaluator.config import EvaluatorConfig, Limits
from rlkernel.settings import Rule
from rlkernel.training.memory import GIB, Demand, MemoryPlan, plan
from rlkernel.training.placement import Placement

H200 = Gpu(0, "GPU-0", "NVIDIA H200", int(139.8 * GIB), "")
CONVERSATION = 4096
"""The tokens of a conversation for which slots are told."""


@dataclass(frozen=True)
class Row:
    """One row: a shape, how it trains, and what evaluations may take of the card."""

    shape: str
    weights: str = "float32"
    lora_rank: int = 0
    evaluation_gib: int = 0
    rule: Rule = "adamw"

    def cells(self) -> list[str]:
        """The row as the page has it."""
        found = self.plan()
        kind = f"LoRA, rank {self.lora_rank}" if self.lora_rank else self.weights
        kind += ", plain descent" if self.rule == "sgd" else ""
        slots = found.slots(CONVERSATION)
        room = str(self.evaluation_gib) if self.evaluation_gib else "0 (half)"
        return [self.shape.upper(), kind, room, f"{found.taken / GIB:.1f} GiB", str(slots) if found.fits else "does not fit"]

    def plan(self) -> MemoryPlan:
        """The prediction for 3 turns of 1,024 tokens."""
        config = EvaluatorConfig(limits=Limits(gpu_memory_bytes=self.evaluation_gib * GIB))
        limit = Placement("cuda:0", H200, shared=True).own_bytes(config)
        demand = Demand(self.shape, weights=self.weights, lora_rank=self.lora_rank, max_new_tokens=1024, rule=self.rule)
        return plan(demand, Qwen3Config(**SHAPES[self.shape]), limit, gpu=True)


ROWS = (
    Row("0.6b"),
    Row("1.7b"),
    Row("4b", evaluation_gib=16),
    Row("4b", evaluation_gib=16, rule="sgd"),
    Row("8b", "bfloat16"),
    Row("8b", "bfloat16", evaluation_gib=24),
    Row("8b", lora_rank=32),
    Row("14b", "bfloat16", evaluation_gib=24),
    Row("14b", evaluation_gib=24),
)
HEAD = ["model", "weights", "`evaluation_gib`", "predicted, without cache", "conversations of 4,096 tokens"]


def table() -> str:
    """The table in Markdown."""
    lines = [HEAD, ["---"] * len(HEAD), *(row.cells() for row in ROWS)]
    return "\n".join(f"|{'|'.join(cells)}|" if cells[0] == "---" else f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    print(table())
