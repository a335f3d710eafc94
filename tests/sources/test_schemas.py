from __future__ import annotations

import json

import pytest
import torch

from rlkernel.reference import load_reference
from rlkernel.sources.schemas import SCHEMAS, BadRow, schema_of, user_text
from tests.sources.published import ASKED, SUM, drkernel, kernelbench, kernelbook


def test_a_row_of_drkernels_training_data() -> None:
    parts = SCHEMAS["drkernel"].read(drkernel(3))
    assert (parts.name, parts.level, parts.prompt) == ("cuda_llm/RowSum-00000003", 1, ASKED)
    assert "class Model(nn.Module)" in parts.source and "super(Model, self)" in parts.source and "RowSum" not in parts.source
    assert parts.split is None


def test_a_row_of_drkernels_validation_data_has_its_level_in_the_sources_name() -> None:
    extra = {"difficulty": None, "name": "1_Sum", "problem_id": 7, "entry_point": None}
    row = drkernel(data_source="kernelbench_level2_validation", extra_info=json.dumps(extra))
    row["reward_model"] = {"ground_truth": SUM.replace("RowSum", "Model"), "style": "rule"}
    parts = SCHEMAS["drkernel"].read(row)
    assert (parts.name, parts.level) == ("kernelbench_level2_validation/1_Sum-7", 2)


def test_a_row_of_kernelbook_runs_as_a_reference() -> None:
    parts = SCHEMAS["kernelbook"].read(kernelbook(5))
    assert (parts.name, parts.level, parts.prompt) == ("kernelbook/RowSum-5", 0, "")
    reference = load_reference(parts.source, small=False)
    assert reference.init_inputs() == ([], {"dim": 1})
    x = torch.ones(4, 64)
    assert torch.equal(reference.model(0)(x), torch.full((4,), 128.0))  # 64 ones, times 2


def test_a_row_of_kernelbench_is_named_as_its_file_would_be() -> None:
    parts = SCHEMAS["kernelbench"].read(kernelbench(19))
    assert (parts.name, parts.level, parts.source) == ("level2/19_Sum", 2, SUM.replace("RowSum", "Model"))


@pytest.mark.parametrize(
    ("row", "schema"), [(drkernel(), "drkernel"), (kernelbook(), "kernelbook"), (kernelbench(), "kernelbench")]
)
def test_schemas_are_recognised_by_their_columns(row: dict[str, object], schema: str) -> None:
    assert schema_of(row) is SCHEMAS[schema]
    assert schema_of({"text": "", "level": 1}) is None


@pytest.mark.parametrize(
    ("row", "cause"),
    [
        (drkernel(reward_model={"ground_truth": None}), "ground_truth is missing"),
        (drkernel(reward_model="no json"), "reward_model is no object"),
        (drkernel(prompt=[{"role": "user"}]), "prompt is no list of messages with role and content"),
        (drkernel(prompt=[]), "prompt has the turns none: expected user, or system and user"),
        (drkernel(extra_info={"entry_point": "Net"}), "no class Net; the file has RowSum"),
        (drkernel(reward_model={"ground_truth": "def"}), "not a Python file: invalid syntax"),
    ],
)
def test_what_is_wrong_with_a_row(row: dict[str, object], cause: str) -> None:
    with pytest.raises(BadRow, match=cause):
        SCHEMAS["drkernel"].read(row)


def test_a_system_turn_stands_before_the_users_text() -> None:
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Write."}]
    assert user_text(turns) == "Be brief.\n\nWrite."
    assert user_text("as it is\n") == "as it is\n"
