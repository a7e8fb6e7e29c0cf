"""One self-contained HTML page about a map.

:func:`make_report` measures a map that any tool has made and writes the page. A run of
:mod:`lowland.workflow` writes it from a summary: :mod:`summary` declares its keys, :mod:`payload`
packs the points, :mod:`advice` and :mod:`wording` have the sentences, and :mod:`page` fills the
files in ``templates/`` (``viewer/``: the map to touch; ``trust/``: where not to believe it). The
page needs no network.
"""

from lowland.report.advice import Advice, advise
from lowland.report.foreign import make_report
from lowland.report.page import render, write_report
from lowland.report.summary import Card, Input, Map, Measure, Summary

__all__ = [
    "Advice",
    "Card",
    "Input",
    "Map",
    "Measure",
    "Summary",
    "advise",
    "make_report",
    "render",
    "write_report",
]
