"""One self-contained HTML page about a map.

:func:`make_report` measures a map that any tool has made and writes the page. A run of
:mod:`lowland.workflow` writes it from a summary: :mod:`summary` declares its keys, :mod:`payload`
packs the points, :mod:`advice` and :mod:`wording` have the sentences, and :mod:`page` fills the
files in ``templates/`` (``viewer/``: the map to touch; ``trust/``: where not to believe it). The
page needs no network.
"""

from lowland._base.registry import exports

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "lowland.report.advice": "Advice advise",
        "lowland.report.foreign": "make_report",
        "lowland.report.page": "render write_report",
        "lowland.report.summary": "Card Input Map Measure Summary",
    },
)
