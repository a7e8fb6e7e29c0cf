"""One self-contained page about a map: the summary of a run goes in, an HTML file comes out.

The page needs no network. What it is made of: :mod:`summary` says what a run has to tell,
:mod:`payload` packs the points, :mod:`advice` and :mod:`reading` find what should be said,
:mod:`page` hands all of it to the files in ``templates/``.
"""

from lowland.report.advice import Advice, advise
from lowland.report.clusters import density_clusters
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
    "density_clusters",
    "make_report",
    "render",
    "write_report",
]
