"""What templates share: texts become markup only where they are meant to, and one script may run."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import jinja2
import pytest

from rlkernel.benchmark.page import TEMPLATE
from rlkernel.report import viewer
from rlkernel.report.page import TEXT_LIMIT, cut_for_page, prose, python_html, render
from rlkernel.report.viewer import ViewerContent

EVIL = "<script>alert(1)</script>"
NOTHING = viewer.pack(ViewerContent([], {}))
RESULTS = {"complete": True, "timing": [], "scores": {}, "unscored": {}}


def benchmark(**changes: object) -> str:
    values = {
        "title": "t",
        "headline": "t: found",
        "results": RESULTS,
        "tables": [],
        "long_tables": [],
        "statuses": [],
        "notes": [],
    }
    return render(TEMPLATE, NOTHING, **{"manifest": "{}", **values, **changes})


def test_prose_escapes_all_but_code() -> None:
    assert str(prose(f"a {EVIL} `x < 1`")) == "a &lt;script&gt;alert(1)&lt;/script&gt; <code>x &lt; 1</code>"
    assert str(prose(f"`{EVIL}`")) == "<code>&lt;script&gt;alert(1)&lt;/script&gt;</code>"


def test_highlighted_code_keeps_its_text_and_escapes_it() -> None:
    html = str(python_html(f"x = '{EVIL}'"))
    assert '<span class="n">x</span>' in html and "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_long_texts_are_cut_and_say_so() -> None:
    long = "x" * (TEXT_LIMIT + 7)
    assert cut_for_page(long) == "x" * TEXT_LIMIT + "\n[7 more characters]"
    assert cut_for_page(long, 3) == f"xxx\n[{TEXT_LIMIT + 4} more characters]"
    assert str(prose(long)).endswith("[7 more characters]")


def test_values_are_escaped_by_the_template() -> None:
    page = benchmark(title=EVIL, headline=EVIL, manifest=EVIL, notes=[EVIL])
    assert EVIL not in page and page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4


def test_the_policy_names_the_hash_of_the_only_script() -> None:
    page = benchmark()
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'\">" in page


def test_a_template_of_any_room_extends_the_page(tmp_path: Path) -> None:
    own = tmp_path / "own.html.j2"
    own.write_text('{% extends "page.html.j2" %}{% block summary %}<p>{{ said }}</p>{% endblock %}')
    assert "<p>a &lt; b</p>" in render(own, NOTHING, title="t", said="a < b")


def test_a_value_that_a_template_lacks_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="notes"):
        render(TEMPLATE, NOTHING, title="t", results=RESULTS, headline="t", tables=[], long_tables=[], statuses=[], manifest="{}")
