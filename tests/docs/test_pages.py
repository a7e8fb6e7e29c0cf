"""Pages say what the code says, links lead somewhere, pictures are there and small."""

import re
import subprocess
import sys
from pathlib import Path

from lowland._core import registry
from support.cases import each

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
PNG = b"\x89PNG"


def test_the_pages_are_what_the_code_makes_of_them():
    check = [sys.executable, str(ROOT / "docs/make_pages.py"), "--check"]
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
    pictures = {path.stem: path for path in (ROOT / "docs/pictures").iterdir()}
    assert set(pictures) == {"digits", *registry.names()}, "run 'make docs'"
    sizes = {name: path.stat().st_size for name, path in pictures.items()}
    assert all(path.read_bytes().startswith(PNG) for path in pictures.values())
    assert sizes["digits"] < 200_000
    assert sum(sizes.values()) < 1_000_000
