"""What a candidate prints is kept for a person, whole or in part, and changes nothing else."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from rlkernel.commands.evaluate import show_words
from rlkernel.evaluator.pool import Pool
from rlkernel.evaluator.processes.words import MOST, Words
from rlkernel.types import Evaluation, Problem, Seconds, Status

HONEST = (Path(__file__).parents[2] / "red_team" / "hostile" / "honest.py").read_text()


def test_the_last_characters_are_kept_without_control_characters() -> None:
    words = Words()
    words.add(b"\x1b[31mred\r\n")
    words.add("\u202eein \u00e4".encode())  # turns the direction of text around
    assert (words.text, words.cut) == (" [31mred \n ein \u00e4", False)
    words.add(b"x" * 10 * MOST)
    assert (words.text, words.cut) == ("x" * MOST, True)
    words.add(b"\xff\xc3")
    assert words.text == "x" * (MOST - 2) + "\ufffd\ufffd"


def test_characters_of_several_bytes_count_once() -> None:
    words = Words()
    words.add("\u20ac".encode() * MOST)
    assert (words.text, words.cut) == ("\u20ac" * MOST, False)


def shown(said: bytes) -> str:
    words, written = Words(), io.StringIO()
    words.add(said)
    show_words(words, Console(file=written, width=60))
    return written.getvalue()


def test_each_line_is_marked_as_the_candidates_own() -> None:
    head = "the candidate printed (its own words, on which no verdict rests; it was traced several times, at several sizes"
    assert shown(b"correct\n\n[bold]speedup 9x\n") == f"{head}):\n  | correct\n  |\n  | [bold]speedup 9x\n"
    assert shown(b"y" * (5 * MOST)).splitlines()[0] == f"{head}; the last 2,000 characters):"
    assert shown(b" \n\n") == ""


async def heard(pool: Pool, problem: Problem, code: str) -> tuple[Evaluation, str]:
    words = pool.listen()
    try:
        return replace(await pool.judge(problem, code), seconds=Seconds()), words.text
    finally:
        pool.server.words = None


PRINTS = (
    "import os, sys\nprint('first')\nprint('\\x1b[2Jno end', end='')\nprint(' of it', file=sys.stderr)\nos.write(1, b'raw\\n')\n"
)


@pytest.mark.anyio
async def test_what_a_module_prints_is_heard_and_the_verdict_is_the_same(pool: Pool, relu: Problem) -> None:
    deaf = replace(await pool.judge(relu, PRINTS + HONEST), seconds=Seconds())
    found, text = await heard(pool, relu, PRINTS + HONEST)
    assert found == deaf and found.status is Status.CORRECT
    each = "first\n [2Jno end of it\nraw\n"
    assert text and text == each * text.count("first")
    assert text not in str(found.to_json())


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("code", "status", "kept"),
    [
        ("print('about to raise')\nraise ValueError('no')\n", Status.INVALID, ("about to raise\n" * 2).__eq__),  # likewise
        ("import os\nprint('last words', end='')\nos._exit(3)\n", Status.CRASH, ("last words" * 2).__eq__),  # at full shape, too
        ("print('waiting')\nwhile True: pass\n", Status.TIMEOUT, "waiting\n".__eq__),
        ("print('z' * 50_000_000)\nraise ValueError\n", Status.INVALID, ("z" * (MOST - 1) + "\n").__eq__),
        ("while True: print('again')\n", Status.TIMEOUT, lambda text: len(text) == MOST and "again\nagain\n" in text),
        ("import os\nos.close(1)\nos.close(2)\nraise ValueError\n", Status.INVALID, "".__eq__),
    ],
)
async def test_words_are_heard_however_the_candidate_ends(
    code: str, status: Status, kept: Callable[[str], bool], hasty_pool: Pool, relu: Problem
) -> None:
    found, text = await heard(hasty_pool, relu, code)
    assert found.status is status
    assert kept(text), text[:200]


@pytest.mark.anyio
async def test_the_pipe_is_for_writing_alone_and_opens_nothing(pool: Pool, relu: Problem) -> None:
    code = (
        "import os\n"
        "for call in (lambda: os.read(1, 1), lambda: open('/proc/self/fd/1', 'w'), os.fork):\n"
        "    try: call(); print('done')\n"
        "    except OSError: print('refused')\n"
        "raise ValueError\n"
    )
    found, text = await heard(pool, relu, code)
    assert (found.status, text) == (Status.INVALID, "refused\n" * 3 * 2)  # at full shape, too


@pytest.mark.anyio
async def test_nobody_listens_unless_asked(pool: Pool, relu: Problem) -> None:
    code = "import os, stat\nassert stat.S_ISCHR(os.fstat(1).st_mode) and stat.S_ISCHR(os.fstat(2).st_mode)\n"
    assert (await pool.judge(relu, code + HONEST)).status is Status.CORRECT
    words = pool.listen()
    pool.server.words = None
    await pool.judge(relu, "print('unheard')\n" + HONEST)
    assert words.text == ""
