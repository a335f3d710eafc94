"""First drafts that nobody judges."""

from __future__ import annotations

from envs.world.suite import load_tasks, of_row, reserved, to_row
from experiments.world.readings import readings
from experiments.world.source import TWO


def test_readings_depend_on_the_seed_alone_and_have_a_task_each() -> None:
    one, again, other = (list(readings(TWO, 30, seed)) for seed in ("0", "0", "1"))
    assert one == again and one != other
    assert len({prompt for prompt, _ in one}) == 30


def test_no_reading_is_about_a_composition_that_validation_keeps_for_itself() -> None:
    forwards = {_forward(of_row(to_row(task)).source) for part in ("compositions", "family") for task in load_tasks()[part]}
    assert len(reserved()) > 30
    for prompt, _ in readings(TWO, 300, "0"):
        assert _forward(prompt) not in forwards


def _forward(text: str) -> str:
    return text.split("def forward")[1].split("def get_inputs")[0]


def test_an_answer_is_a_plan_and_a_module() -> None:
    for _, answer in readings(TWO, 20, "3"):
        assert answer.startswith("Plan: ") and "class ModelNew(nn.Module):" in answer
