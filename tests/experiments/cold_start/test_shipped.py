"""The corpus that comes with the project is the one that the recipe asks for, and is as this version would write it."""

import json
from pathlib import Path

import pytest

from envs.world.suite import of_row, reserved, world_problems
from experiments.cold_start import command
from experiments.cold_start.recipes import WORLD_RECIPES
from experiments.cold_start.shipped import unpack
from experiments.world.corpus_file import CorpusFile
from experiments.world.source import World
from rlkernel.environment.kernel_env import KernelEnvironment

SHIPPED = WORLD_RECIPES["h200_shown"][0].worlds
"""What both policies for GPUs are taught, and what one of them is taught besides."""


@pytest.fixture(scope="module", params=range(len(SHIPPED)), ids=["world", "beside"])
def world(request: pytest.FixtureRequest) -> World:
    return SHIPPED[request.param]


@pytest.fixture(scope="module")
def corpus(world: World, tmp_path_factory: pytest.TempPathFactory) -> CorpusFile:
    path = tmp_path_factory.mktemp("cold_start") / f"{world.label(WORLD_RECIPES['h200'][0].seed)}.jsonl"
    assert unpack(path)
    return CorpusFile(path)


def test_it_is_whole_and_was_measured(world: World, corpus: CorpusFile) -> None:
    assert len(corpus.found) == world.total() == {480: 3000, 160: 480}[world.extra]
    corpus.check_timing("measured")


def test_both_policies_share_the_first() -> None:
    assert WORLD_RECIPES["h200"][0].worlds == SHIPPED[:1]


def test_its_prompts_are_those_of_this_version(corpus: CorpusFile) -> None:
    """A prompt that has changed since would teach a policy to read what nobody writes."""
    environment = KernelEnvironment()
    assert all(found.prompt == environment.prompt(found.problem) for found in list(corpus.found.values())[::50])


def test_it_has_nothing_that_validation_keeps_for_itself(corpus: CorpusFile) -> None:
    validation = {problem.name for problem in world_problems() if problem.split == "validation"}
    assert len(validation) == 90
    taught = [found.problem.name for found in corpus.found.values()]
    assert not set(taught) & validation
    compositions = {
        task.composition for task in (of_row(json.loads(line)["task"]) for line in corpus.path.read_text().splitlines())
    }
    assert not compositions & reserved()


def test_a_corpus_that_is_begun_is_left_alone(tmp_path: Path, corpus: CorpusFile) -> None:
    path = tmp_path / corpus.path.name
    path.write_text("")
    assert not unpack(path)
    assert path.read_text() == ""
    assert not unpack(tmp_path / "corpus_another.jsonl")  # nothing of that name comes with the project


def test_the_flag_is_for_the_world(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--judge-anew"]) == 2
    assert capsys.readouterr().err.startswith("error: --judge-anew is for a policy of the world: give --world too")
