"""The first rows of a table, as a notebook shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lowland._core.html import SHOWN_ROWS, html_lines, html_table

if TYPE_CHECKING:
    from lowland.io.tables import Table

SHOWN_COLUMNS = 8  # features, and as many labels


def table_html(table: Table) -> str:
    """Ids, the first features and the labels of the first rows; notes below."""
    rows, columns = table.shape
    names = table.feature_names or tuple(f"column {i}" for i in range(columns))
    shown, labels = names[:SHOWN_COLUMNS], table.labels.columns[:SHOWN_COLUMNS]
    features = _first(table.features, len(shown))
    beside = table.labels.select(labels).head(SHOWN_ROWS).rows() if labels else [()] * len(features)
    gap = ["…"] if columns > len(shown) else []
    body = [
        (row, *numbers, *gap, *texts)
        for row, numbers, texts in zip(
            table.ids.head(SHOWN_ROWS).to_list(), features, beside, strict=True
        )
    ]
    headings = [table.ids.name, *shown, *gap, *(f"{label} (label)" for label in labels)]
    left_out = max(0, rows - SHOWN_ROWS)
    notes = html_lines(table.notes) if table.notes else ""
    return html_table(headings, body, repr(table), left_out=left_out) + notes


def _first(features: Any, columns: int) -> list[list[Any]]:
    """The first numbers of the first rows; a sparse matrix shows its zeros."""
    head = features[:SHOWN_ROWS, :columns]
    dense = head.toarray() if hasattr(head, "toarray") else np.asarray(head)
    return dense.tolist()
