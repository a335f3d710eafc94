"""What is reported of honest candidates: kernels, calls, modelled speedup; and every problem of the suite can be judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from envs.problems import family_of, load_suite
from rlkernel.evaluator.pool import Pool
from rlkernel.reference_text import prompt_source
from rlkernel.types import Problem, Status

HONEST = Path(__file__).parents[1] / "red_team" / "honest"
SUITE = {problem.name: problem for problem in load_suite()}
LAUNCHES = {
    "level1/add_scaled": {"add_scaled": 1},
    "level1/add_transposed": {"add_strided": 1},
    "level1/column_sum": {"add_rows": 1},
    "level1/embedding": {"gather": 1},
    "level1/gelu": {"gelu": 1},
    "level1/layer_norm": {"norm_row": 1},
    "level1/mse_loss": {"partial_squares": 1, "mean_of_parts": 1},
    "level1/softmax": {"softmax_row": 1},
    "level1/xor_int": {"xor": 1},
    "level2/add_silu_half": {"add_silu": 1},
    "level2/chain_bias_gelu_scale": {"bias_gelu_scale": 1},
    "level2/chain_bias_tanh": {"bias_tanh": 1},
    "level2/matmul_bias_relu": {"matmul_bias_relu": 1},
    "level3/gated_mlp": {"silu_mul": 1},
    "level3/rotary_pair": {"rotate": 2},
    "level3/row_statistics": {"statistics": 1},
}


def test_the_table_names_every_file() -> None:
    files = {str(file.relative_to(HONEST).with_suffix("")) for file in HONEST.glob("level*/*.py")}
    assert files == set(LAUNCHES)


@pytest.mark.anyio
@pytest.mark.parametrize("name", LAUNCHES)
async def test_honest_candidates_are_correct(pool: Pool, name: str) -> None:
    result = await pool.evaluate(SUITE[name], (HONEST / f"{name}.py").read_text())
    assert (result.status, result.matches) == (Status.CORRECT, True)
    undecided = name == "level1/mse_loss"  # a sum of partial sums, whose loop is short at every size that a look takes
    assert result.detail.startswith("judged at ROWS = 16, COLS = 88 alone: ") if undecided else not result.detail
    assert {fact.kernel: fact.calls for fact in result.launches} == LAUNCHES[name]
    assert all(fact.live for fact in result.launches)


@pytest.mark.anyio
async def test_three_fused_steps_are_more_than_three_times_as_fast(pool: Pool) -> None:
    name = "level2/chain_bias_gelu_scale"
    result = await pool.evaluate(SUITE[name], (HONEST / f"{name}.py").read_text())
    # Three passes over the tensor, 64.9 us each, against one; the reference's first one adds a bias, whose addresses are divided
    # for each of 33.6 million elements at 0.38 million in a microsecond: 90 us.
    assert result.speedup == pytest.approx((2 * 64.9 + 90) / 64.9, rel=0.01)
    assert result.coverage == 1.0


CHAINS = [problem for problem in SUITE.values() if family_of(problem) == "chain"]
OTHERS = [problem for problem in SUITE.values() if problem not in CHAINS]


@pytest.mark.anyio
@pytest.mark.parametrize("problem", [*OTHERS, *CHAINS[::10]], ids=lambda problem: problem.name)
async def test_the_reference_itself_matches_but_has_no_kernel(pool: Pool, problem: Problem) -> None:
    code = prompt_source(problem.source).partition("def get_inputs")[0].replace("class Model(", "class ModelNew(")
    result = await pool.evaluate(problem, code)
    assert result.status is Status.NO_KERNEL
    assert result.matches is True
    assert result.speedup == pytest.approx(1.0, rel=1e-6)
