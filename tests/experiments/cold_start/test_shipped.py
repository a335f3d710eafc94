"""The corpus that comes with the project is the one that the recipe asks for, and is as this version would write it."""

from pathlib import Path

import pytest

from envs.world.suite import world_problems
from experiments.cold_start import command
from experiments.cold_start.recipes import WORLD_RECIPES
from experiments.cold_start.shipped import unpack
from experiments.world.corpus_file import CorpusFile
from rlkernel.environment.kernel_env import KernelEnvironment


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> CorpusFile:
    recipe, _ = WORLD_RECIPES["h200"]
    assert recipe.world is not None
    path = tmp_path_factory.mktemp("cold_start") / f"{recipe.world.label(recipe.seed)}.jsonl"
    assert unpack(path)
    return CorpusFile(path)


def test_it_is_whole_and_was_measured(corpus: CorpusFile) -> None:
    recipe, _ = WORLD_RECIPES["h200"]
    assert recipe.world is not None
    assert len(corpus.found) == recipe.world.total() == 3000
    corpus.check_timing("measured")


def test_its_prompts_are_those_of_this_version(corpus: CorpusFile) -> None:
    """A prompt that has changed since would teach a policy to read what nobody writes."""
    environment = KernelEnvironment()
    assert all(found.prompt == environment.prompt(found.problem) for found in list(corpus.found.values())[::50])


def test_it_has_nothing_that_validation_keeps_for_itself(corpus: CorpusFile) -> None:
    validation = {problem.name for problem in world_problems() if problem.split == "validation"}
    assert len(validation) == 90
    assert not {found.problem.name for found in corpus.found.values()} & validation


def test_a_corpus_that_is_begun_is_left_alone(tmp_path: Path, corpus: CorpusFile) -> None:
    path = tmp_path / corpus.path.name
    path.write_text("")
    assert not unpack(path)
    assert path.read_text() == ""
    assert not unpack(tmp_path / "corpus_another.jsonl")  # nothing of that name comes with the project


def test_the_flag_is_for_the_world(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--judge-anew"]) == 2
    assert capsys.readouterr().err.startswith("error: --judge-anew is for a policy of the world: give --world too")
