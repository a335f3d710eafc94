"""Every command that README and `docs/` show is run: here at reduced size, by a named test, or not for a stated reason."""

from __future__ import annotations

import ast
import glob
import importlib.util
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import experiments
import rlkernel
from rlkernel.commands import cli
from rlkernel.training import command
from tests.echo import ScriptedEvaluator

ROOT = Path(rlkernel.__file__).parent.parent
PAGES = {
    path.name: path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "evaluator").glob("*.md")))
}
PROGRAMS = ("make", "python", "rlkernel", "pip", "wandb", "accelerate", "torchrun", "ray")
"""First words of a command in an indented block; in a block of `sh`, every line is one."""
SETTING = re.compile(r"[A-Z_]+=\S*")
"""`NAME=value` before a command."""


@dataclass(frozen=True)
class Shown:
    """A command of a page, without its comment. block: shown in a block of its own; else it stands in a sentence or a table."""

    page: str
    text: str
    block: bool

    @property
    def words(self) -> list[str]:
        words = shlex.split(self.text)
        while words and SETTING.fullmatch(words[0]):
            words.pop(0)
        return words


def is_command(text: str) -> bool:
    words = [word for word in text.split() if not SETTING.fullmatch(word)]
    return bool(words) and words[0] in PROGRAMS


def commands_of(page: str, text: str) -> Iterator[Shown]:
    """The commands of blocks of `sh` and of indented blocks, then those in backticks."""
    fenced = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
    for language, block in fenced.findall(text):
        if language == "sh":
            joined = block.replace("\\\n", " ")
            yield from (Shown(page, line, True) for line in map(uncommented, joined.splitlines()) if line)
    prose = fenced.sub("", text)
    for line in prose.splitlines():
        if line.startswith("    ") and is_command(line):
            yield Shown(page, uncommented(line), True)
    for code in re.findall(r"`([^`\n]+)`", prose):
        if is_command(code) and len(code.split()) > 1:
            yield Shown(page, code, False)


def uncommented(line: str) -> str:
    """
    >>> uncommented("make test   # all of it")
    'make test'
    """
    return " ".join(re.sub(r"(^|\s)#.*", "", line).split())


EVERY = tuple(shown for page, text in PAGES.items() for shown in commands_of(page, text))

# Run here. `TINY` and `FEW` are appended, so that they win over what the command says; text: what it prints.
TINY = (
    *("--preset", "cpu", "--steps", "1", "--prompts-per-step", "1", "--rollouts", "2", "--validation-rollouts", "1"),
    *("--turns", "1", "--max-new-tokens", "4", "--seeds", "0", "--jobs", "1", "--model", "tiny", "--together", "1"),
)
TRAINED: dict[str, tuple[tuple[str, ...], str]] = {
    "python -m experiments.multi_turn_estimators": (TINY, "report: runs/multi_turn_estimators/report.html"),
    "python -m experiments.multi_turn_estimators grpo trloo --steps 5 --seeds 0": (TINY, "trloo - grpo"),
    "python -m experiments.myopia --seeds 0 --steps 2": (TINY, "unclear: Myopic credit ends above the return to go"),
    "rlkernel compare runs/multi_turn_estimators": ((), "trloo - grpo"),
    "rlkernel compare runs/arms/grpo-seed0-* runs/arms/trloo-seed*": ((), "trloo - grpo"),
    "rlkernel compare runs/multi_turn_estimators --late --metric correct_rate --json": ((), '"correct_rate"'),
    "python -m experiments.results": (("--any-scale",), "runs/results/README.md: "),
}
"""In this order, in one directory, with a random model and a scripted evaluator: the later ones read what the first left."""
LISTED: dict[str, tuple[tuple[str, ...], str]] = {
    "python -m experiments.multi_turn_estimators --list": ((), "grpo_single_turn"),
    "python -m experiments.multi_turn_estimators --methods": ((), "TRLOO(singleton=return)"),
    "python -m experiments.multi_turn_estimators --help": ((), "--limit-seconds"),
    "python -m experiments.all --list": ((), "trloo_mrs_pr_prs"),
    "python -m experiments.sequential_scaling --list": (("--preset", "cpu"), "TopTurns"),
    "python -m experiments.myopia --list": ((), "gamma = 0.0"),
    "python -m experiments.benchmark --model small --list": (("--device", "cpu"), "level2/chain_"),
    "rlkernel doctor": ((), "sandbox"),
}
REHEARSED = ("make ablation", "make setup", "make test", "make test-gpu")
"""With -n, which prints what would be done: they install packages."""

ELSEWHERE = {
    "python -m experiments.multi_turn_estimators grpo trloo --seeds 0 --together 2": (
        "tests/training/test_side_by_side.py::test_runs_side_by_side_are_those_that_train_alone"
    ),
    "python -m experiments.multi_turn_estimators grpo trloo --limit-seconds 540": (
        "tests/commands/test_experiment.py::test_at_the_limit_the_next_checkpoint_stops_the_command_which_goes_on_later"
    ),
    "python -m experiments.all --limit-seconds 540": (
        "tests/experiments/test_arms.py::test_every_experiment_runs_reports_and_shares_its_arms"
    ),
    "python -m experiments.full_recipe --preset paper --dry-run": "tests/experiments/test_arms.py::test_paper_scale_is_rehearsed",
    "python -m experiments.estimator_bias": (
        "tests/experiments/test_estimator_bias.py::test_the_command_writes_figure_and_numbers"
    ),
    "python -m experiments.benchmark --model small": (
        "tests/experiments/benchmark/test_benchmark.py::test_a_model_of_ours_goes_on_with_more_turns"
    ),
    "python -m experiments.benchmark --url http://localhost:8000/v1 --model NAME --turns 10 --context top:4": (
        "tests/experiments/benchmark/test_benchmark.py::test_a_multi_turn_benchmark_of_an_endpoint_that_fails_and_a_kill_in_the_middle"
    ),
    "python -m experiments.benchmark --solutions examples/solutions --problems KernelBench --missing skip": (
        "tests/experiments/benchmark/test_benchmark.py::test_a_directory_of_solutions"
    ),
    "python -m experiments.prepare_problems hkust-nlp/drkernel-rl-data --out data/rl.parquet --against KernelBench --min-us 10": (
        "tests/experiments/preparation/test_prepare_problems.py::test_a_table_is_prepared_and_the_same_command_asks_nothing_again"
    ),
    "python -m experiments.multi_turn_estimators trloo --problems hkust-nlp/drkernel-rl-data "
    "--validation hkust-nlp/drkernel-validation-data": (
        "tests/experiments/test_published_data.py::test_a_run_on_a_table_like_drkernels_trains_two_steps"
    ),
    "python -m experiments.benchmark --model Qwen/Qwen3-8B --problems ScalingIntelligence/KernelBench:level_2": (
        "tests/experiments/test_published_data.py::test_the_benchmark_takes_a_table"
    ),
    "rlkernel evaluate --problems problems.jsonl NAME CANDIDATE.py": (
        "tests/experiments/test_published_data.py::test_a_problem_of_a_table_is_evaluated_by_its_name"
    ),
    "python -m experiments.cold_start --model Qwen/Qwen3-8B-Base --data hkust-nlp/drkernel-coldstart-8k --out runs/cold_8b": (
        "tests/experiments/tuning/test_tune.py::test_what_a_tiny_model_learns_is_executed_and_scores"
    ),
    "python -m experiments.cold_start --model Qwen/Qwen3-8B-Base --data hkust-nlp/drkernel-coldstart-8k --lora-rank 32 "
    "--out runs/cold_lora": "tests/experiments/tuning/test_tune.py::test_a_tuning_that_was_stopped_goes_on_exactly",
    "python -m experiments.prepare_conversations runs/benchmark/Qwen3-8B-* --out data/kept.parquet --keep correct --speedup 1.2 "
    "--turns 3..5": ("tests/experiments/preparation/test_prepare_conversations.py::test_the_command_joins_a_benchmark_and_a_run"),
    "python -m experiments.cold_start --model Qwen/Qwen3-8B --data data/kept.parquet --out runs/better": (
        "tests/commands/test_reproduce.py::test_every_command_of_the_page_is_executed"
    ),
    "python -m examples.rl_loop --steps 6": "tests/examples/test_rl_loop.py::test_two_steps_on_the_evaluators_verdicts",
    "python -m examples.trl_grpo --model small --steps 2": (
        "tests/examples/test_trl_grpo.py::test_stock_trl_trains_on_the_evaluators_rewards"
    ),
    "rlkernel evaluate tests/red_team/problems/row_mean.py tests/red_team/hostile/mean_of_96.py": (
        "tests/evaluator/test_red_team.py::test_status"
    ),
    "rlkernel evaluate REFERENCE.py CANDIDATE.py --check": (
        "tests/commands/test_evaluate.py::test_a_person_is_told_where_a_wrong_result_differs_and_no_policy_is"
    ),
    "rlkernel evaluate REFERENCE.py CANDIDATE.py": (
        "tests/commands/test_commands.py::test_the_kernel_of_the_readme_prints_what_it_shows"
    ),
    "rlkernel evaluate envs/suite/level2/chain_bias_gelu_scale.py tests/red_team/honest/level2/chain_bias_gelu_scale.py": (
        "tests/commands/test_commands.py::test_the_kernel_of_the_readme_prints_what_it_shows"
    ),
    "rlkernel evaluate --manifest cases.jsonl --out results.jsonl --jobs 2": (
        "tests/commands/test_manifest.py::test_manifest_writes_one_object_per_case_and_resumes"
    ),
    "rlkernel evaluate --manifest cases.jsonl --out results.jsonl --device ray": (
        "tests/evaluator/ray/test_cluster.py::test_no_evaluation_is_lost_or_said_twice_when_actors_and_nodes_die"
    ),
    "rlkernel serve --problems SOURCE": (
        "tests/integrations/test_openenv.py::test_a_conversation_has_a_prompt_feedback_rewards_and_an_end"
    ),
    "python -m experiments.multi_turn_estimators --config run.toml --list": (
        "tests/commands/test_run_file.py::test_a_file_adds_arms_and_sets_flags"
    ),
    "python -m experiments.multi_turn_estimators wide --config run.toml --steps 2": (
        "tests/commands/test_run_file.py::test_words_of_the_command_line_win"
    ),
    "python -m experiments.results --again docs/results/2026-11-21": (
        "tests/experiments/results/test_results.py::test_pages_and_figures_are_made_again_from_what_is_checked_in"
    ),
    "python -m experiments.results --archive docs/results": (
        "tests/experiments/results/test_results.py::test_results_are_moved_to_a_folder_of_their_date_and_keep_their_claims"
    ),
    "python -m experiments.results --archive docs/results --only transfer": (
        "tests/experiments/results/test_results.py::test_one_experiment_is_moved_and_written_anew_and_the_others_stay"
    ),
    "python -m experiments.results --runs runs/later --out docs/results --add": (
        "tests/experiments/results/test_adding.py::test_seeds_of_a_later_piece_are_judged_with_the_first_ones"
    ),
    "python -m experiments.results --runs runs/later --out docs/results --only transfer": (
        "tests/experiments/results/test_results.py::test_one_experiment_is_moved_and_written_anew_and_the_others_stay"
    ),
    "python -m benchmarks.mutants --count 300 --out FILE.jsonl": (
        "tests/benchmarks/test_mutants.py::test_the_command_tells_what_differs_and_goes_on_where_it_stopped"
    ),
    "python -m experiments.power runs/arms": "tests/experiments/test_power.py::test_runs_of_two_cards",
    "python -m experiments.claims": "tests/experiments/test_claims.py::test_the_page_in_the_docs_is_generated",
    "python -m experiments.off_policy_bias": ("tests/experiments/test_off_policy_bias.py::test_the_command_writes_the_numbers"),
    "python -m experiments.world.check --count 10000": (
        "tests/experiments/world/test_commands.py::test_the_check_tells_the_families_and_stops_in_time"
    ),
    "python -m experiments.world.check --mistakes 4": (
        "tests/experiments/world/test_commands.py::test_the_check_tells_the_families_and_stops_in_time"
    ),
    "python -m experiments.world.difficulty --limit-seconds 540": (
        "tests/experiments/world/test_commands.py::test_the_figure_is_drawn"
    ),
    "python -m experiments.world.modelled --count 9": (
        "tests/experiments/world/test_modelled.py::test_answers_are_modelled_and_the_ratios_told"
    ),
    "python -m experiments.world.oracle --limit-seconds 540": (
        "tests/experiments/world/test_commands.py::test_a_search_goes_on_where_it_stopped"
    ),
    "rlkernel metrics runs/arms/hot_age2-seed0-1a2b3c4d": "tests/commands/test_metrics.py::test_the_rows_of_a_run_fit_a_terminal",
    "rlkernel metrics runs/arms/hot_age2-seed0-1a2b3c4d --names reward kl_k1 kl_k3": (
        "tests/commands/test_metrics.py::test_the_rows_of_a_run_fit_a_terminal"
    ),
    "rlkernel doctor --model Qwen/Qwen3-8B --weights bfloat16 --turns 3 --max-new-tokens 1024": (
        "tests/commands/test_doctor.py::test_a_model_is_planned_from_its_configuration"
    ),
    "rlkernel doctor --model Qwen/Qwen3-14B --weights bfloat16 --card-gib 139.8 --evaluation-gib 24 --max-new-tokens 1024": (
        "tests/commands/test_doctor.py::test_a_card_that_is_not_here_has_the_rows_of_the_page"
    ),
    "rlkernel doctor --model Qwen/Qwen3-14B --weights bfloat16 --gib 112": (
        "tests/commands/test_doctor.py::test_a_model_is_planned_from_its_configuration"
    ),
    "rlkernel doctor --model Qwen/Qwen3-8B --pieces 2 --gib 135": (
        "tests/commands/test_doctor.py::test_a_model_is_planned_from_its_configuration"
    ),
    "accelerate launch --multi_gpu --num_processes 2 --main_process_port 0 -m experiments.multi_turn_estimators --preset cpu": (
        "tests/training/test_several_processes.py::test_the_documented_command_trains_in_two_processes"
    ),
}
"""Command -> the test that runs it, perhaps with other names and sizes."""
ELSEWHERE_BY_PAGE = {
    "add_an_estimator.md": "tests/test_add_an_estimator.py::test_commands",
    "add_a_correction.md": "tests/test_add_a_correction.py::test_commands",
    "reproduce.md": "tests/commands/test_reproduce.py::test_every_command_of_the_page_is_executed",
}
NOT_RUN = {
    "accelerate launch --num_processes 2 --main_process_port 0 -m experiments.multi_turn_estimators": "needs several GPUs",
    "accelerate launch --config_file examples/fsdp2.yaml --num_processes 2 --main_process_port 0 "
    "-m experiments.multi_turn_estimators": "needs several GPUs; tests/training/test_sharded_processes.py does what it does",
    "rlkernel evaluate REFERENCE.py CANDIDATE.py --device cuda:0 --compiled": "needs a GPU",
    "python -m experiments.benchmark --model Qwen/Qwen3-8B --problems KernelBench --levels 1 2 --samples 4": "needs a GPU",
    "python -m experiments.cold_start --size medium": "needs a GPU",
    "python -m experiments.cold_start": "needs a GPU",
    "python -m experiments.cold_start --world h200": "needs a GPU",
    "python -m experiments.cold_start --world h200_shown": "needs a GPU",
    "python -m experiments.cold_start --world h200_shown --limit-seconds 540": "needs a GPU",
    "python -m experiments.cold_start --world cpu": "takes minutes of a GPU",
    "python -m experiments.cold_start --world h200 --dry-run": "draws tasks for half a minute; test_cold_start.py does it small",
    "python -m experiments.cold_start --world h200 --limit-seconds 540": "needs a GPU",
    "python -m experiments.cold_start --world cpu --limit-seconds 540": "takes minutes of a GPU",
    "python -m experiments.world.page runs/arms/trloo-seed*": "needs the runs of the world",
    "python -m experiments.multi_turn_estimators trloo --preset world": "needs the policy of cold_start --world h200",
    "python -m experiments.multi_turn_estimators trloo --preset world_cpu": "needs the policy of cold_start --world cpu",
    "rlkernel evaluate REFERENCE.py CANDIDATE.py --native": "needs a GPU",
    "rlkernel evaluate REFERENCE.py CANDIDATE.py --untraceable native": "needs a GPU",
    "vf-eval rlkernel-verifiers --env.taskset.problems SOURCE --env.turns 3 -m NAME --client.base-url URL": (
        "asks an endpoint; tests/integrations/test_verifiers.py runs the environment where the package is installed"
    ),
    "ray start --head --num-cpus 0 --num-gpus 0": "stays; tests/evaluator/ray/test_cluster.py starts such nodes as children",
    "ray start --address HEAD:6379": "needs another machine",
    "accelerate launch --config_file examples/fsdp2.yaml --num_processes 3 --main_process_port 0 "
    "-m benchmarks.full_size --out FILE --shape 8b --weights float32 --evaluator simulated --steps 1": "needs several GPUs",
    "python -m benchmarks.full_size --out FILE --shape 14b --arm trloo_mrs_pr_prs --evaluation-gib 16 --steps 1 --tokens 256": (
        "needs a GPU of 100 GiB"
    ),
    "python -m benchmarks.full_size --out FILE --shape 8b --arm hrd_0.5_single_turn --evaluation-gib 16 --steps 1 --turns 1 "
    "--tokens 512": "needs a GPU of 100 GiB",
    "CUDA_VISIBLE_DEVICES=0 taskset -c 0-15 python -m experiments.all trloo grpo --preset world --seeds 0 --together 2": (
        "needs several GPUs"
    ),
    "CUDA_VISIBLE_DEVICES=1 taskset -c 16-31 python -m experiments.all trloo grpo --preset world --seeds 1 --together 2": (
        "needs several GPUs"
    ),
    "wandb sync runs/arms/*/wandb/offline-run-*": "uploads to a service",
}


def test_every_command_in_a_block_is_run_or_says_why_not() -> None:
    shown = {one for one in EVERY if one.block}
    assert len(shown) > 30
    tables = {*TRAINED, *LISTED, *REHEARSED, *ELSEWHERE, *NOT_RUN}
    assert [one for one in shown if one.page not in ELSEWHERE_BY_PAGE and one.text not in tables] == []
    assert sorted(tables - {one.text for one in shown}) == [], "no page shows these any more"


@pytest.mark.parametrize("named", sorted({*ELSEWHERE.values(), *ELSEWHERE_BY_PAGE.values()}))
def test_the_named_tests_exist(named: str) -> None:
    path, _, function = named.partition("::")
    nodes = ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
    assert function in {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def flags_of(words: list[str]) -> tuple[set[str], str]:
    """(flags that the command gives, source text in which they are defined)."""
    given = {re.split("[= ]", word)[0].removeprefix("--") for word in words if re.match(r"--\w", word)}
    if words[0] == "rlkernel":
        return given, (ROOT / "rlkernel" / "commands" / "cli.py").read_text(encoding="utf-8")
    path = ROOT / f"{words[2].replace('.', '/')}.py"
    # A command that has grown is a folder, and its flags have a file of their own.
    parts = [path] if path.is_file() else sorted(path.with_suffix("").glob("*.py"))
    source = "".join(part.read_text(encoding="utf-8") for part in parts)
    if "experiment.main(EXPERIMENT" in source or path.name == "all.py":
        source = (ROOT / "rlkernel" / "commands" / "asked.py").read_text(encoding="utf-8")
    return given, source


def our_own(shown: Shown) -> bool:
    words = shown.words
    module = words[2].split(".")[0] if words[:2] == ["python", "-m"] and len(words) > 2 else ""
    return words[0] == "rlkernel" or (module in ("experiments", "benchmarks", "examples") and shown.page not in ELSEWHERE_BY_PAGE)


@pytest.mark.parametrize(
    "shown", sorted({one for one in EVERY if our_own(one)}, key=repr), ids=lambda one: f"{one.page}: {one.text}"
)
def test_programs_and_flags_of_every_command_exist(shown: Shown) -> None:
    words = shown.words
    if "experiments.myopia" in words:
        words[2] = "experiments.full_recipe"  # the page's own file, which is run below, has the flags of all experiments
    given, source = flags_of(words)
    if words[0] == "rlkernel" and len(words) > 1:
        assert words[1] in (*cli.COMMANDS, "--help")
    for flag in given - {"help"}:
        assert re.search(rf'^    {flag.replace("-", "_")}: |"--{flag}"', source, re.MULTILINE), flag


@pytest.mark.parametrize(
    "target", sorted({word for one in EVERY if one.words[0] == "make" for word in one.words[1:] if "=" not in word})
)
def test_targets_of_make_exist(target: str) -> None:
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def run(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """As a shell would, in this process: importing torch for each of them would take longer than all they do. Exit status."""
    words = [part for word in shlex.split(text) for part in (sorted(glob.glob(word)) or [word])]
    if words[0] == "rlkernel":
        return cli.main(words[1:])
    assert words[:2] == ["python", "-m"], text
    monkeypatch.setattr(sys, "argv", words[2:])
    spec = importlib.util.find_spec(words[2])
    assert spec is not None and spec.origin is not None
    with pytest.raises(SystemExit) as stop:
        # A room's command is its `__main__`.
        runpy.run_path(spec.origin.replace("__init__.py", "__main__.py"), run_name="__main__")
    return int(stop.value.code or 0)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to stand in, with what the commands name; and the experiment that a page writes."""
    for name in ("envs", "tests", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n# experiments/myopia\.py\n(.*?)^```$", PAGES["experiments.md"], re.DOTALL | re.MULTILINE)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "myopia.py").write_text(code)
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(tmp_path / "own")])
    return tmp_path


def test_experiments_are_listed(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for text, (more, printed) in LISTED.items():
        assert run(shlex.join([*shlex.split(text), *more]), monkeypatch) in ((0, 1) if "doctor" in text else (0,)), text
        assert printed in capsys.readouterr().out, text
    assert not (place / "runs" / "arms").exists()


@asynccontextmanager
async def scripted(*_: Any) -> AsyncIterator[ScriptedEvaluator]:
    yield ScriptedEvaluator()


def test_experiments_train_are_compared_and_reported(
    place: Path, tiny_model: Any, tiny_tokenizer: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_model.config.max_position_embeddings = 4096  # the tokenizer has hardly any merges, so prompts are long
    tiny_model.save_pretrained(place / "tiny")
    tiny_tokenizer.save_pretrained(place / "tiny")
    monkeypatch.setattr(command, "open_evaluator", scripted)
    for text, (more, printed) in TRAINED.items():
        assert run(" ".join([text, *more]), monkeypatch) == 0, text
        assert printed in capsys.readouterr().out, text
    assert len(list(place.glob("runs/arms/*/manifest.json"))) == 5  # four arms, and the page's own; trloo is shared
    assert (place / "runs" / "multi_turn_estimators" / "compare.png").is_file() and (
        place / "runs" / "arms" / "compare.png"
    ).is_file()
    assert (place / "runs" / "results" / "README.md").is_file()


def test_the_kernel_of_the_readme_prints_what_it_shows(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (text,) = (one.text for one in EVERY if one.page == "README.md" and one.text.startswith("rlkernel evaluate envs"))
    found = re.search(r"^    rlkernel evaluate envs.*\n\n((?:    .*\n)+)", PAGES["README.md"], re.MULTILINE)
    assert found is not None
    assert run(f"{text} --device cpu", monkeypatch) == 0
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    expected = [" ".join(line.split()) for line in found[1].splitlines()]

    def steady(lines: list[str]) -> list[str]:
        """Without the rounding error of inputs that are drawn anew each time, and without how long the judges took."""
        return [re.sub(r"error [\d.e-]+|\d+\.\d+ s\b", "", line) for line in lines]

    assert steady(printed) == steady(expected)
