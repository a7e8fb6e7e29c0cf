"""Generate the parts of the documentation that describe the code.

    python docs/make_pages.py             # write
    python docs/make_pages.py --check     # write nothing; list stale pages, exit code 1

The pages in docs/methods are generated as a whole. In all other pages and in the READMEs only the
text between ``<!-- made: name -->`` and ``<!-- end -->`` is generated.
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path

from commands import command_page
from docstrings import cell, markdown, sections
from make_engines_index import ENGINES, engine_room, engine_rooms
from make_pictures import call
from method_pages import abilities, details, method_page, name_of, table
from trust_pictures import recorded_sentences

from lowland._base import registry
from lowland._base.base import Reducer
from lowland.selection._base import Selector

DOCS = Path(__file__).resolve().parent
METHODS = sorted(
    registry.all_methods(), key=lambda cls: (registry.FAMILIES.index(cls.family()), cls.__name__)
)
TITLES = {
    "linear": "Linear methods",
    "kernel": "Kernel methods",
    "mds": "Multidimensional scaling",
    "curvilinear": "Curvilinear methods: short distances first",
    "spectral": "Spectral methods",
    "unfolding": "Unfolding: a curved surface laid flat",
    "topographic": "Topographic methods: a grid or a curve laid through the data",
    "neural": "Networks: a map that is a function",
    "latent": "Latent variables: a map with a likelihood",
    "embedding": "Neighbor embeddings",
}
ASKED_FOR = "LDA PCA KernelPCA MDS Isomap LLE SOM Autoencoder TSNE UMAP"  # the README names these
SIZES = (1_000, 10_000, 100_000, 1_000_000)
COLUMNS = 50
BLOCK = re.compile(r"(<!-- made: ([\w.-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


# --- blocks --------------------------------------------------------------------------------


def readme_methods() -> str:
    """The table of the README: the methods that people ask for most."""
    rows = [
        (
            f"[`{cls.__name__}`](docs/methods/{name_of(cls)}.md)",
            cell(cls.card.use),
            *list(abilities(cls).values())[:3],
        )
        for cls in METHODS
        if cls.__name__ in ASKED_FOR.split()
    ]
    return table(["method", "use it", "new rows", "inverse", "sparse"], rows)


def choices() -> str:
    """What each method is for."""
    rows = [
        (f"[{cls.__name__}](methods/{name_of(cls)}.md)", *map(cell, cls.card)) for cls in METHODS
    ]
    return table(["method", "keeps", "use it", "do not use it", "cost"], rows)


def abilities_table() -> str:
    """What each method can do."""
    rows = [(cls.__name__, cls.family(), *abilities(cls).values()) for cls in METHODS]
    return table(["method", "family", *abilities(METHODS[0])], rows)


def costs() -> str:
    """Estimates for some sizes."""
    rows = []
    for cls in METHODS:
        needs = [cls.estimate(n, COLUMNS) for n in SIZES]
        shown = [f"{seconds(need.seconds)}, {size(need.n_bytes)}" for need in needs]
        rows.append((f"`{name_of(cls)}`", *shown))
    heads = [f"{n:,} rows".replace(",", " ") for n in SIZES]
    return table(["method", *heads], rows)


def seconds(value: float) -> str:
    """A rough time: one or two digits."""
    if value < 0.1:
        return "below 0.1 s"
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if value < limit:
            return f"{value / unit:.1f} {name}" if value < 1 else f"{value / unit:.0f} {name}"
    return f"{value / 86400:.0f} days"


def size(n_bytes: float) -> str:
    """A rough amount of memory."""
    for power, name in ((4, "TB"), (3, "GB"), (2, "MB")):
        value = n_bytes / 1000**power
        if value >= 1:
            return f"{value:.0f} {name}" if value >= 10 else f"{value:.1f} {name}"
    return "below 1 MB"


def method_list() -> str:
    """Links to the methods' pages, by family."""
    lines = []
    for family in registry.FAMILIES:
        links = [
            f"[{cls.__name__}](methods/{name_of(cls)}.md)"
            for cls in METHODS
            if cls.family() == family
        ]
        lines += [f"- {family}: {', '.join(links)}"] if links else []
    return "\n".join(lines) + "\n"


def gallery() -> str:
    """The picture of every method, by family."""
    parts = []
    for family in registry.FAMILIES:
        members = [cls for cls in METHODS if cls.family() == family]
        parts += [f"## {TITLES.get(family, family)}\n"] if members else []
        for cls in members:
            name = name_of(cls)
            parts.append(f"[{cls.__name__}](methods/{name}.md), made by `{call(cls)}`:\n")
            parts.append(f"![maps by {cls.__name__}](pictures/{name}.png)\n")
    return "\n".join(parts)


def selectors() -> str:
    """Every selector: its criterion and its own parameters."""
    common = {*Reducer.parameters(), *Selector.parameters()}
    rows = []
    for cls in registry.all_selectors():
        own = [f"`{name}={field.default!r}`" for name, field in cls.parameters().items()]
        own = [text for text, name in zip(own, cls.parameters(), strict=True) if name not in common]
        criterion = cell(sections(cls)["summary"])
        rows.append((f"`{cls.__name__}`", criterion, ", ".join(own)))
    return table(["class", "what it does", "own parameters"], rows)


def rows_methods() -> str:
    """Which methods and selectors fit tables that are read in chunks."""

    def links(classes: list[type[Reducer]]) -> str:
        return ", ".join(f"[{cls.__name__}](methods/{name_of(cls)}.md)" for cls in classes)

    every = [cls for cls in registry.all_selectors() if cls.fits_rows]
    selectors = ", ".join(f"`{cls.__name__}`" for cls in every)
    rows = [
        ("fit to all rows", links([cls for cls in METHODS if cls.fits_rows])),
        ("scores of columns from all rows", f"{selectors} ([selectors](selection.md))"),
        ("fit to a sample", links([cls for cls in METHODS if not cls.fits_rows])),
    ]
    return table(["what", "methods"], rows)


def not_in(page: str) -> list[type[Reducer]]:
    """Methods that the hand-written part of a page does not link to."""
    text = BLOCK.sub("", (DOCS / page).read_text(encoding="utf-8"))
    return [cls for cls in METHODS if f"(methods/{name_of(cls)}.md)" not in text]


def other_choices() -> str:
    """Methods that no row of the table of questions names."""
    lines = [
        f"- [{cls.__name__}](methods/{name_of(cls)}.md): use it {markdown(cls.card.use)}\n"
        for cls in not_in("choosing.md")
    ]
    return "".join(lines)


def other_readings() -> str:
    """What can be read from the maps of methods that the table does not name."""
    lines = [
        f"- [{cls.__name__}](methods/{name_of(cls)}.md): {' '.join(map(markdown, cls.reading))}\n"
        for cls in not_in("reading.md")
    ]
    return "".join(lines)


def command(name: str) -> str:
    """A command's usage and options, as the program declares them."""
    usage, text, rows = command_page(name)
    return f"```\n{usage}\n```\n\n{text}\n\n" + table(["option", "what it does"], rows)


def functions(module_name: str) -> str:
    """The public names of a module, each with its first sentence."""
    module = importlib.import_module(module_name)
    rows = [
        (f"`{name}`", cell(sections(getattr(module, name))["summary"])) for name in module.__all__
    ]
    return table(["name", "what it is"], rows)


def alignment_class(name: str) -> str:
    """What a class that puts several tables into one map is and takes."""
    cls = registry.get_alignment(name)
    parts = sections(cls)
    card = "\n".join(
        f"- **{head}**: {markdown(text)}"
        for head, text in zip(("Keeps", "Use it", "Do not use it", "Cost"), cls.card, strict=True)
    )
    said = f"{markdown(parts['summary'])}\n\n{markdown(parts['text'])}\n\n{card}\n\n"
    return said + details(cls, "### ")


def planted(name: str) -> str:
    """What the program said of a map with a planted error when its picture was drawn."""
    rows = [
        ("ok" if level == "fine" else level, cell(text)) for level, text in recorded_sentences(name)
    ]
    return table(["", "what lowland says"], rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "readme-methods": readme_methods,
    "choices": choices,
    "abilities": abilities_table,
    "costs": costs,
    "method-list": method_list,
    "gallery": gallery,
    "other-choices": other_choices,
    "other-readings": other_readings,
    "rows-methods": rows_methods,
    "selectors": selectors,
    "engines": engine_rooms,
}
# <!-- made: module.lowland.metrics -->
MADE_FROM = {
    "command": command,
    "module": functions,
    "class": alignment_class,
    "planted": planted,
    "engine": engine_room,
}


def block(name: str) -> str:
    """The text of a block."""
    if name in BLOCKS:
        return BLOCKS[name]()
    kind, _, argument = name.partition(".")
    return MADE_FROM[kind](argument)


# --- all pages ---------------------------------------------------------------------------------


def pages() -> dict[Path, str]:
    """Every page with generated text, as it should be."""
    found = {DOCS / "methods" / f"{name_of(cls)}.md": method_page(cls) for cls in METHODS}
    readmes = [DOCS.parent / "README.md", *sorted(ENGINES.rglob("README.md"))]
    for path in [*readmes, *sorted(DOCS.glob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        found[path] = BLOCK.sub(lambda m: f"{m[1]}{block(m[2])}{m[3]}", text)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Write the pages, or list those that are out of date."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if stale")
    check = parser.parse_args(arguments).check
    made = pages()
    stale = [
        path
        for path, text in made.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    stale += [path for path in (DOCS / "methods").glob("*.md") if path not in made]
    for path in stale:
        sys.stdout.write(
            f"{'out of date' if check else 'wrote'}: {path.relative_to(DOCS.parent)}\n"
        )
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(made[path], encoding="utf-8") if path in made else path.unlink()
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
