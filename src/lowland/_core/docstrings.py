"""Parameters and fitted attributes are documented once, where they are declared.

A class documents its own parameters and attributes in numpydoc sections. Family bases do the same
for what they declare, and :data:`GLOSSARY` holds what several families share. When a class is
made, :func:`complete` adds the inherited entries, so that ``help(TSNE)`` shows all of them, and
the command line takes the first sentence of an entry as the help of the option.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """One documented name: ``name : kind`` and the text below it."""

    kind: str
    text: str


# What a parameter or attribute means wherever no class says more about it.
GLOSSARY = {
    "n_components": Entry("int, default=2", "Dimension of the map."),
    "random_state": Entry(
        "int, numpy Generator, RandomState or None, default=None",
        "Seed of the random numbers. None draws a fresh seed.",
    ),
    "n_jobs": Entry(
        "int or None, default=None",
        "Number of threads, BLAS included. None uses every allowed core. The result does not "
        "depend on it.",
    ),
    "verbose": Entry("bool, default=False", "Show progress on stderr."),
    "callback": Entry(
        "function or None, default=None",
        "Called as ``callback(step, map, loss)`` now and then. If it returns True, the fit stops "
        "and keeps the map as it is.",
    ),
    "metric": Entry(
        'str or function, default="euclidean"',
        'Distance between rows: a name, a function of two rows, or "precomputed". With '
        '"precomputed", X holds the n x n distances of the fitted rows, and new rows are given by '
        "their distances to the fitted rows.",
    ),
    "metric_params": Entry(
        "dict or None, default=None",
        'Keyword parameters of the metric, such as ``{"p": 3}`` for "minkowski", or those of a '
        "function.",
    ),
    "on_disconnected": Entry(
        '{"bridge", "largest", "raise"}, default="bridge"',
        'What to do when the neighbor graph has several connected components. "bridge" adds the '
        'shortest edges that connect them. "largest" maps the largest component and places the '
        'other rows like new rows. "raise" refuses.',
    ),
    "embedding_": Entry("ndarray of shape (n_samples, n_components)", "Map of the fitted rows."),
    "eigenvalues_": Entry("ndarray of shape (n_components,)", "Eigenvalue of each axis."),
    "residual_": Entry("float", "Largest relative residual of the eigenpairs."),
    "n_iter_": Entry("int", "Number of steps done."),
    "n_components_": Entry("int", "Dimension of the map."),
    "n_connected_components_": Entry("int", "Connected components of the neighbor graph."),
}

TITLE = re.compile(r"^(?P<title>[A-Z]\w*)\n-{3,}$", re.MULTILINE)


def _sections(text: str) -> list[tuple[str, str]]:
    """The parts of a docstring with their titles; the introduction has the title ``""``."""
    parts = TITLE.split(text)
    return [("", parts[0].strip()), *((parts[i], parts[i + 1]) for i in range(1, len(parts), 2))]


def entries(doc: str | None, section: str) -> dict[str, Entry]:
    """The entries of a numpydoc section of a docstring, by name; ``a, b : kind`` gives two."""
    found: dict[str, Entry] = {}
    text = dict(_sections(inspect.cleandoc(doc or ""))).get(section, "")
    names: list[str] = []
    for line in text.strip("\n").split("\n"):
        if line and not line.startswith(" "):
            head, _, kind = line.partition(" : ")
            names = [name.strip() for name in head.split(",") if name.strip()]
            found |= {name: Entry(kind.strip(), "") for name in names}
        else:
            for name in names:
                kind, known = found[name]
                found[name] = Entry(kind, f"{known} {line.strip()}".strip())
    return {name: entry for name, entry in found.items() if entry.text}


def short(entry: Entry) -> str:
    """The first sentence of an entry, without its period: the help of an option."""
    return re.split(r"(?<=[^.])\.(?:\s|$)", entry.text, maxsplit=1)[0]


def complete(
    doc: str | None, documented: Mapping[str, tuple[Iterable[str], Mapping[str, Entry]]]
) -> str:
    """A docstring whose sections list every name, the class's own first.

    ``documented`` has, by section, all names in order and what is known of each.
    """
    sections = _sections(inspect.cleandoc(doc or ""))
    own = dict(sections)
    texts = {}
    for title, (names, known) in documented.items():
        text = own.get(title, "").strip("\n")
        there = entries(doc, title)
        added = [
            _entry_text(name, known[name]) for name in names if name not in there and name in known
        ]
        texts[title] = "\n".join([part for part in (text, *added) if part])
    rest = [(title, text) for title, text in sections[1:] if title not in texts]
    titled = [(title, text) for title, text in (*texts.items(), *rest) if text]
    parts = [f"{title}\n{'-' * len(title)}\n{text.strip(chr(10))}" for title, text in titled]
    return "\n\n".join([own[""], *parts]) + "\n"


def _entry_text(name: str, entry: Entry) -> str:
    import textwrap

    body = textwrap.fill(entry.text, 96, initial_indent="    ", subsequent_indent="    ")
    return f"{name} : {entry.kind}\n{body}"
