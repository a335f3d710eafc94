"""Extraction: a table of odd completions with the exact code, and properties over arbitrary text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlkernel.environment.extract import MAX_LINE, extract_code, fenced_blocks

CODE = "import torch\n\nclass ModelNew:\n    pass\n"
OTHER = "class ModelNew:\n    x = 1\n"
DOCUMENTED = 'class ModelNew:\n    """\n```\nuse = it\n```\n    """\n    y = 2\n'

TABLE = {
    "plain": (f"Plan.\n```python\n{CODE}```\nDone.", CODE),
    "py_tag": (f"```py\n{CODE}```", CODE),
    "no_tag": (f"```\n{CODE}```", CODE),
    "upper_case_tag": (f"```Python\n{CODE}```", CODE),
    "tag_after_a_space": (f"``` python\n{CODE}```", CODE),
    "info_string": (f"```python title=model.py\n{CODE}```", CODE),
    "braced_tag": (f"```{{python}}\n{CODE}```", CODE),
    "unknown_tag_with_the_class": (f"```cuda\n{CODE}```", CODE),
    "tildes": (f"~~~python\n{CODE}~~~", CODE),
    "four_backticks": (f"````python\n{CODE}````", CODE),
    "longer_closing_fence": (f"```python\n{CODE}`````", CODE),
    "crlf": (f"Plan.\n```python\n{CODE}```\n".replace("\n", "\r\n"), CODE),
    "lone_cr": (f"```python\n{CODE}```\n".replace("\n", "\r"), CODE),
    "unclosed": (f"Plan.\n```python\n{CODE}", CODE),
    "unclosed_and_end_of_turn": (f"```python\n{CODE}<|im_end|>\nand more", CODE),
    "cut_in_the_middle": ("```python\nclass ModelNew:\n    def forward(self, x", "class ModelNew:\n    def forward(self, x\n"),
    "last_of_two": (f"```python\n{CODE}```\nBetter:\n```python\n{OTHER}```", OTHER),
    "usage_after_the_answer": (f"```python\n{CODE}```\nRun it:\n```python\nprint(1)\n```", CODE),
    "shell_after_the_answer": (f"```python\n{CODE}```\n```bash\npython x.py\n```", CODE),
    "no_class": ("```python\nprint(1)\n```", "print(1)\n"),
    "class_only_mentioned": ("```text\nModelNew is here\n```", None),
    "only_shell": ("```bash\nls\n```", None),
    "empty_block_before": (f"```python\n```\n```python\n{CODE}```", CODE),
    "empty_block": ("```python\n\n```", None),
    "prose_only": ("I would write a class ModelNew, with a kernel.", None),
    "empty": ("", None),
    "no_fence": (f"Here it is.\n\n{CODE}", CODE),
    "no_fence_from_import": (
        "from torch import nn\nclass ModelNew(nn.Module): pass",
        "from torch import nn\nclass ModelNew(nn.Module): pass\n",
    ),
    "indented_in_a_list": ("1. Fuse.\n   ```python\n   class ModelNew:\n       pass\n   ```", "class ModelNew:\n    pass\n"),
    "opened_after_prose": (f"Here: ```python\n{CODE}```", CODE),
    "closed_after_code": ("```python\nclass ModelNew:\n    pass```\nDone.", "class ModelNew:\n    pass\n"),
    "fence_in_a_docstring": (f"```python\n{DOCUMENTED}```\nDone.", DOCUMENTED),
    "fence_in_an_inline_string": (
        '```python\nclass ModelNew:\n    x = "```"\n    y = 1\n```',
        'class ModelNew:\n    x = "```"\n    y = 1\n',
    ),
    "docstring_never_closed": (f'```python\n"""\n{CODE}```\nDone.', f'"""\n{CODE}'),
    "quote_in_a_comment": (f'```python\n# say """ here\n{CODE}```\n"""', f'# say """ here\n{CODE}'),
    "thought_with_code": (f"<think>\n```python\n{OTHER}```\n</think>\n```python\n{CODE}```", CODE),
    "thought_with_code_only": (f"<think>\n```python\n{CODE}```\n</think>\nI give up.", None),
    "thought_without_opening_tag": (f"First:\n```python\n{OTHER}```\n</think>\n```python\n{CODE}```", CODE),
    "thought_never_closed": (f"<think>\nLet me see.\n```python\n{CODE}```", None),
    "two_thoughts": (f"<think>a</think>\n<think>\n```\n</think>\n```python\n{CODE}```", CODE),
    "thought_with_an_open_fence": (f"<think>\n```python\nhalf\n</think>\n```python\n{CODE}```", CODE),
    "closing_tag_in_a_comment": (f"```python\n# </think>\n{CODE}```", f"# </think>\n{CODE}"),
    "blank_lines_around": (f"```python\n\n\n{CODE}\n\n```", CODE),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_odd_completions(name: str) -> None:
    completion, expected = TABLE[name]
    assert extract_code(completion) == expected


def test_tags_are_reported_in_lower_case() -> None:
    assert [(block.tag, block.code) for block in fenced_blocks("```Bash\nls\n```\n```\nx\n```")] == [("bash", "ls"), ("", "x")]


PIECES = st.sampled_from(
    [
        "```",
        "```python\n",
        "~~~",
        "\n",
        "\r\n",
        '"""',
        "'''",
        '"',
        "'",
        "\\",
        "#",
        "<think>",
        "</think>",
        "class ModelNew",
        " ",
        "x",
    ]
)


@given(st.lists(PIECES | st.text(max_size=8), max_size=60).map("".join))
def test_never_raises_and_returns_code_or_none(text: str) -> None:
    code = extract_code(text)
    assert code is None or (code.strip() and code.endswith("\n") and not code.startswith("\n"))


CODE_LINES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="`~\"'<\u2028\u2029"), max_size=30
)


@given(st.lists(CODE_LINES, max_size=12), st.sampled_from(["python", "py", ""]), st.booleans())
def test_a_well_formed_answer_comes_back_whole(lines: list[str], tag: str, closed: bool) -> None:
    code = "\n".join(["class ModelNew:", *lines, "    pass"]) + "\n"
    assert extract_code(f"A plan.\n```{tag}\n{code}" + ("```\nDone." if closed else "")) == code


@pytest.mark.parametrize(
    "text", ['"\\' * 40_000, "<think>\n" * 10_000, '```\n"""\n' * 10_000, "`" * 80_000, "<think></think>\n" * 4_000]
)
def test_hostile_text_takes_linear_time(text: str) -> None:
    since = time.process_time()
    extract_code("```python\nclass ModelNew: pass\n" + text)
    extract_code(text)
    assert time.process_time() - since < 20  # of this process alone, whatever else runs; quadratic time is minutes


def test_a_very_long_line_changes_no_quote() -> None:
    code = f"class ModelNew:\n    x = '{'a' * MAX_LINE}'\n"
    assert extract_code(f"```python\n{code}```\nDone.") == code
