"""Generated text is current, links have targets, every method has a small picture."""

import re
import subprocess
import sys
from pathlib import Path

from lowland._base import registry
from support.cases import each

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("src/**/*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
PNG = b"\x89PNG"


@each("script", ["make_pages.py", "make_stub.py"])
def test_what_is_made_from_the_code_is_up_to_date(script):
    check = [sys.executable, str(ROOT / "docs" / script), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run 'make docs':\n{done.stdout}{done.stderr}"


def anchor(heading: str) -> str:
    """A heading's name in a link, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@each("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"\w+://", link):
            continue
        target, _, heading = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), link
        if heading:
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in map(anchor, headings), link


def test_every_method_has_its_picture_and_all_are_small():
    pictures = {path.stem: path for path in (ROOT / "docs/pictures").glob("*.*")}
    assert set(pictures) == {"digits", *registry.names()}, "run 'make docs'"
    sizes = {name: path.stat().st_size for name, path in pictures.items()}
    assert all(path.read_bytes().startswith(PNG) for path in pictures.values())
    assert sizes["digits"] < 200_000
    assert sum(sizes.values()) < 3_000_000


def test_choosing_and_reading_name_every_method():
    for page in ("docs/choosing.md", "docs/reading.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        text = re.sub(r"<!-- made: (?!other-).*?<!-- end -->", "", text, flags=re.DOTALL)
        for name in registry.names():
            assert f"(methods/{name}.md)" in text, (page, name)


def test_the_page_on_selection_describes_every_selector_by_hand():
    text = (ROOT / "docs/selection.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `(\w+)` \| (?:filter|stepwise|wrapper) \|", text, re.MULTILINE)
    assert sorted(described) == registry.selector_names()
