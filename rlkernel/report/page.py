"""Renders pages of one file, from templates that share `page.html.j2`.

Everything that a model wrote is untrusted: templates escape it, `viewer` packs it, and the page's content security policy forbids
network access and every script but the viewer's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import markupsafe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from rlkernel.report import viewer
from rlkernel.runs import texts

HERE = Path(__file__).parent
STYLES = ("page.css", "summary.css", "viewer.css", "turn.css")
"""The page's style sheets, in the order in which they are joined."""
TEXT_LIMIT = 6000
"""The most characters of one text outside of the viewer; the rest is cut, and the page says so."""


def render(template: Path, packed: viewer.PackedContent, **values: Any) -> str:
    """Render a page. template: a file, of any room, that extends page.html.j2 of this one; values: what it asks for."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, HERE]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"cut": cut_for_page, "prose": prose, "python": python_html}
    script, script_hash = viewer.script()
    return environment.get_template(template.name).render(
        packed=packed,
        script=script,
        script_hash=script_hash,
        highlighting=_highlighting(),
        styles="\n".join((HERE / name).read_text(encoding="utf-8") for name in STYLES),
        **values,
    )


def _highlighting() -> str:
    """The style sheet of highlighted code, for light and dark screens."""
    dark = HtmlFormatter(style="github-dark").get_style_defs(".code")
    return f"{HtmlFormatter(style='friendly').get_style_defs('.code')}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"


def cut_for_page(text: str, limit: int = TEXT_LIMIT) -> str:
    """Cut a text as `rlkernel.runs.texts.cut` does, by default to the page's own limit."""
    return texts.cut(text, limit)


def prose(text: str) -> markupsafe.Markup:
    """Escape a text, and show what stands in `backticks` as code.

    >>> str(prose("a < `b`"))
    'a &lt; <code>b</code>'
    """
    code = markupsafe.Markup("<code>{}</code>")
    parts = cut_for_page(text).split("`")
    return markupsafe.Markup("").join(code.format(part) if i % 2 else part for i, part in enumerate(parts))


def python_html(code: str) -> markupsafe.Markup:
    """Highlight Python code. Pygments escapes the text, so that the result is safe to insert."""
    return markupsafe.Markup(highlight(cut_for_page(code), PythonLexer(), HtmlFormatter(cssclass="code")))
