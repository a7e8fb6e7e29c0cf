"""HTML that notebooks show; every text is escaped, because names and labels come from files."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from typing import Any

SHOWN_ROWS = 10  # of a long table
LONGEST = 200  # characters of one cell


def html_table(
    headings: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "", *, left_out: int = 0
) -> str:
    """A table; None is an empty cell, and a float has four digits.

    ``left_out`` is the number of rows that are not shown; a last line states it.

    >>> html_table(["a", "b"], [[1, "<i>"]], "two")
    '<table><caption>two</caption><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>&lt;i&gt;</td></tr></tbody></table>'
    """
    body = "".join(_line(row, "td") for row in rows)
    if left_out:
        body += f'<tr><td colspan="{len(headings)}">and {left_out} more</td></tr>'
    title = f"<caption>{_escaped(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead>{_line(headings, 'th')}</thead><tbody>{body}</tbody></table>"


def html_lines(lines: Iterable[str]) -> str:
    """One paragraph of several lines."""
    return f"<p>{'<br>'.join(_escaped(line) for line in lines)}</p>"


def html_image(png: bytes, alt: str) -> str:
    """A picture inside the page, with the text that describes it."""
    data = base64.b64encode(png).decode("ascii")
    return f'<img alt="{_escaped(alt)}" src="data:image/png;base64,{data}">'


def _line(cells: Sequence[Any], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{_escaped(cell)}</{tag}>' for cell in cells)}</tr>"


def _escaped(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    if len(text) > LONGEST:
        text = f"{text[: LONGEST - 1]}…"
    return html.escape(text, quote=True)
