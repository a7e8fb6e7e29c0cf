"""The code of every lecture runs as it stands, and draws the pictures of the page."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from PIL import Image

from lowland import PCA, TSNE, Isomap, KernelPCA, NonmetricMDS
from lowland._engines.embedding.affinity import joint_affinities
from lowland.datasets import breakfast, digits, swiss_roll, two_rings, wine
from lowland.metrics import barnes_hut_cost, chance_shares, elbow
from lowland.neighbors import knn_graph
from support.cases import each

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("lecture_pages", ROOT / "docs/lecture_pages.py")
lecture_pages = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(lecture_pages)
PAGES = lecture_pages.pages()
KEPT = ROOT / "docs/pictures/lectures"
# Pages that take long are run on less; "make docs" runs them as they stand.
LESS = {
    "barnes_hut": {"blobs(5000": "blobs(500"},
    "filter_and_wrapper": {"range(1, 7)": "range(1, 3)", "cv=3": "cv=2"},
    "perplexity": {"import digits": "import iris as digits", "300]": "49]"},
    "spectrum": {"compare digits": "compare iris"},
    "swiss_roll": {"swiss_roll(1500": "swiss_roll(400"},
}
LONG = {"animals", "decoded", "uncertainty"}  # seconds
every_page = each("page", PAGES, ids=lambda page: page.stem)


def code_lines(text: str) -> list[str]:
    """Lines of code without imports."""
    lines = [line for line in text.splitlines() if line.strip()]
    return [line for line in lines if not re.match(r"(from|import) ", line)]


def pixels(path: Path) -> np.ndarray:
    """The brightness of the pixels of a picture."""
    with Image.open(path) as image:
        return np.asarray(image.convert("L"))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.slow] if page.stem in LONG else [])
        for page in PAGES
    ],
)
def test_the_code_of_a_page_draws_its_pictures(page, tmp_path):
    less = LESS.get(page.stem, {})
    code = "".join(block.text for block in lecture_pages.blocks(page))
    assert all(code.count(piece) == 1 for piece in less)
    printed = lecture_pages.run(page, tmp_path, less)
    names = lecture_pages.pictures(page)
    assert names
    for name in names:
        drawn, kept = pixels(lecture_pages.drawn(name, tmp_path)), pixels(KEPT / f"{name}.png")
        # the kept picture is this one, made smaller
        ratio = (drawn.shape[1] / drawn.shape[0]) / (kept.shape[1] / kept.shape[0])
        assert ratio == pytest.approx(1, abs=0.05), f"run 'make docs': {name}"
        assert drawn.std() > 5  # it is not empty
    shown = [block.output for block in lecture_pages.blocks(page)]
    for output, found in zip(shown, printed, strict=True):
        assert not output or output == found


@every_page
def test_a_page_needs_one_command_or_ten_lines(page):
    found = lecture_pages.blocks(page)
    assert found
    for block in found:
        most = 1 if block.language == "sh" else 10
        assert len(code_lines(block.text)) <= most, block.text


@every_page
def test_a_page_says_in_a_few_sentences_what_to_see(page):
    text = page.read_text(encoding="utf-8")
    for part in text.split("![")[1:]:
        prose = part.partition("\n")[2].partition("\n#")[0].partition("\n```")[0]
        assert 3 <= len(re.findall(r"[.:)] |\.\n|\.$", prose)) <= 14, part[:60]


def test_all_pages_are_in_the_index_and_all_pictures_on_a_page():
    index = (lecture_pages.LECTURES / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"\]\((\w+)\.md\)", index)) == [page.stem for page in PAGES]
    shown = [name for page in PAGES for name in lecture_pages.pictures(page)]
    assert sorted(shown) == sorted(path.stem for path in KEPT.iterdir()), "run 'make docs'"
    for path in KEPT.iterdir():
        assert path.stat().st_size < 100_000, path


# What the pages say in numbers is true.


def straight_line(Y, ring):
    """The share of rows on their side of the least-squares line."""
    design = np.column_stack([Y, np.ones(len(Y))])
    side = design @ np.linalg.lstsq(design, 2.0 * ring - 1, rcond=None)[0]
    return float(((side > 0) == (ring == 1)).mean())


def test_kernel_pca_separates_two_rings_with_its_defaults():
    rings = two_rings(600, random_state=0)
    assert straight_line(KernelPCA(2).fit_transform(rings.X), rings.y) > 0.99
    assert straight_line(PCA(2).fit_transform(rings.X), rings.y) < 0.7


def test_isomap_unrolls_the_roll_and_pca_does_not():
    data = swiss_roll(1500, random_state=0)
    along = data.truth[:, 0]

    def agreement(Y):
        return max(abs(np.corrcoef(axis, along)[0, 1]) for axis in Y.T)

    assert agreement(Isomap(2, n_neighbors=10).fit_transform(data.X)) > 0.99
    assert agreement(PCA(2).fit_transform(data.X)) < 0.8


def test_the_rules_for_the_number_of_components_disagree_as_the_page_says():
    X = wine().X
    shares = PCA(scale=True).fit(X).explained_variance_ratio_
    above = int((shares > chance_shares(X, scale=True)).sum())
    enough = int(np.searchsorted(np.cumsum(shares), 0.9)) + 1
    assert (above, elbow(shares), enough) == (3, 4, 8)


def test_the_stress_of_the_breakfast_map_is_the_one_on_the_page():
    D = breakfast().X
    stress = NonmetricMDS(metric="precomputed", random_state=0).fit(D).stress_
    assert round(stress, 2) == 0.07


def test_strong_attraction_presses_the_map_into_a_line_where_the_page_says():
    X = digits().X
    P = joint_affinities(knn_graph(X, 90), 30.0).to_csr().toarray()
    L = len(X) * (np.diag(P.sum(axis=1)) - P)
    low = scipy.linalg.eigh(L, eigvals_only=True, subset_by_index=[1, 2])
    assert [round(1 / value) for value in low] == [108, 65]

    def flatness(exaggeration):
        Y = TSNE(exaggeration=exaggeration, random_state=0).fit_transform(X)
        long, short = np.linalg.svd(Y - Y.mean(axis=0), compute_uv=False)
        return short / long

    assert flatness(30) > 0.1
    assert flatness(80) < 0.01


def test_the_error_at_the_usual_opening_angle_is_below_one_percent():
    Y = TSNE(random_state=0).fit_transform(digits().X[:1000])
    assert barnes_hut_cost(Y, [0.5], n_repeats=1).errors[0] < 0.01
