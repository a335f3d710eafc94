"""The text of reference files: the small variant, what the prompt shows, and one clear line for each `SMALL` that is none."""

from __future__ import annotations

import pytest

from rlkernel.errors import BrokenReference
from rlkernel.reference import load_reference
from rlkernel.reference_text import apply_small, prompt_source, shrink, small_of
from tests.test_reference import SCALE


@pytest.mark.parametrize("value", ["3", "None", '["dim"]', "{'N': f()}", "{1: 2}", "{[]: 1}"])
def test_a_small_that_is_no_dict_is_one_clear_line(value: str) -> None:
    for read in (lambda text: load_reference(text, small=True, name="p"), lambda text: small_of(text, name="p")):
        with pytest.raises(BrokenReference) as caught:
            read(f"N = 4\nSMALL = {value}\n")
        assert str(caught.value) == 'p: SMALL on line 2 is not a literal dict such as {"N": 64}'


@pytest.mark.parametrize("value", ["0", "-3", "True", "1.5", "'8'", "None", "(4, 0)", "()"])
def test_a_size_is_a_whole_number_of_at_least_one(value: str) -> None:
    with pytest.raises(BrokenReference) as caught:
        apply_small(f"M = 4\nN = 4\nSMALL = {{'M': 2, 'N': {value}}}\n", name="p")
    wanted = f"p: SMALL on line 3 gives N = {value}, which is no size; use a whole number of at least 1"
    assert str(caught.value) == wanted


def test_a_name_that_the_file_does_not_assign_is_refused() -> None:
    with pytest.raises(BrokenReference) as caught:
        apply_small("SMALL = {'N': 3}\n", name="p")
    assert str(caught.value) == "p: SMALL names N, but no line assigns `N = ...` at the top of the file"


@pytest.mark.parametrize("text", ["SMALL = {'N': 8}\n", "SMALL: dict[str, int] = {'N': 8}\n", "\ufeffSMALL = {'N': 8}"])
def test_a_files_small_is_read(text: str) -> None:
    assert small_of(text) == {"N": 8}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("N = 4096\n", "N = 4096\n"),
        ("SMALL = {}\nN = 4\n", "SMALL = {}\nN = 4\n"),
        ("N = 4096  # rows\nSMALL = {'N': 8}\n", "N = 8  # rows\nSMALL = {'N': 8}\n"),
        ("SMALL = {'N': 8}\nN: int = (\n    64 *\n    64)\n", "SMALL = {'N': 8}\nN: int = (\n    8)\n"),
        ("M, N = 1024, 4096\nSMALL = {'N': 8}\n", "M, N = 1024, 8\nSMALL = {'N': 8}\n"),
        ("é = 'ü'; N = 4096; M = N\nSMALL = {'N': 8}\n", "é = 'ü'; N = 8; M = N\nSMALL = {'N': 8}\n"),
        ("N = 1\r\nM = 2\r\nSMALL = {'M': 8}\r\n", "N = 1\r\nM = 8\r\nSMALL = {'M': 8}\r\n"),
        ("N = 1\nN = 2\nSMALL = {'N': 8}\n", "N = 8\nN = 8\nSMALL = {'N': 8}\n"),
        ("S = (1, 2)\nSMALL = {'S': (3, 4)}\n", "S = (3, 4)\nSMALL = {'S': (3, 4)}\n"),
        ("N = 4\ndef f():\n    N = 5\nSMALL = {'N': 8}\n", "N = 8\ndef f():\n    N = 5\nSMALL = {'N': 8}\n"),
        ("\ufeffN = 4\nSMALL = {'N': 8}", "N = 8\nSMALL = {'N': 8}"),
    ],
)
def test_apply_small_replaces_only_the_named_constants(source: str, expected: str) -> None:
    assert apply_small(source) == expected


def test_the_prompt_shows_neither_docstring_nor_small() -> None:
    assert prompt_source(SCALE) == SCALE.split('bias."""\n')[1].replace('\nSMALL = {"ROWS": 2, "COLS": 6}\n', "")


def test_a_file_without_docstring_and_small_is_shown_as_it_is() -> None:
    source = "import torch\n\n\nN = 4\n"
    assert prompt_source(source) == source


def test_a_candidates_constant_follows_the_small_shape_if_it_has_the_references_name_and_value() -> None:
    code = "COLS = 8192\nROWS = 100\nWIDTH = 8192\nclass ModelNew: at = torch.randn(8192)\n"
    small = "COLS = 8\nROWS = 100\nWIDTH = 8192\nclass ModelNew: at = torch.randn(8192)\n"
    assert shrink(code, {"COLS": [8192, 8], "ROWS": [64, 2]}) == small
