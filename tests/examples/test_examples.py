"""Every example runs on small data and prints what it claims to show."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from lowland.datasets import digits


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+\.?\d*", text)]


def test_two_axes_hold_nearly_all_of_iris(example):
    shares, petals = example("iris_pca").splitlines()
    assert numbers(shares) == [97.8, 92.5]
    assert numbers(petals)[0] < 5


def test_tsne_keeps_neighbors_and_pca_the_gross_layout(example):
    lines = example("digits_side_by_side", "--rows", 400).splitlines()
    kept = {line.split()[0]: numbers(line)[0] for line in lines}
    assert list(kept) == ["PCA", "LLE", "Isomap", "t-SNE"]
    assert kept["t-SNE"] > 2 * kept["PCA"]
    assert kept["t-SNE"] == max(kept.values())


def test_the_swiss_roll_is_unrolled_by_neighbors_alone(example):
    lines = example("swiss_roll", "--rows", 1000).splitlines()
    trust = {line[:12].strip(): numbers(line[12:])[0] for line in lines}
    assert list(trust) == ["PCA", "kernel PCA", "t-SNE", "Isomap", "modified LLE"]
    alone = min(trust["t-SNE"], trust["Isomap"], trust["modified LLE"])
    assert alone > 0.99 > max(trust["PCA"], trust["kernel PCA"])


def test_unseen_wines_lie_better_in_the_map_of_lda(example):
    shares = [numbers(line)[0] for line in example("pca_against_lda").splitlines()]
    raw, scaled, lda = shares
    assert raw < 75 < scaled < lda


def test_a_perplexity_near_the_number_asked_for_keeps_most(example):
    lines = example("perplexities", "--rows", 330).splitlines()[1:]
    lines = [numbers(line) for line in lines]  # perplexity, share, 5, share, 50
    assert [line[0] for line in lines] == [2, 5, 30, 50, 100]
    of_5, of_50 = (np.array([line[i] for line in lines]) for i in (1, 3))
    assert of_5.argmax() in (1, 2)
    assert of_50.argmax() >= 2
    assert of_50[0] == of_50.min()


FACES = ("eigenfaces.png", "reconstruction.png")


def test_eigen_images_of_the_bundled_digits(example):
    assert "1797 images of 8x8" in example("eigenfaces", pictures=FACES)


def test_eigen_images_of_an_archive_with_fewer_rows_than_pixels(example, tmp_path):
    np.savez(tmp_path / "some.npz", X=digits().X[:40].astype(np.uint8))
    assert "40 images of 8x8" in example("eigenfaces", tmp_path / "some.npz", pictures=FACES)


def test_eigen_images_of_a_folder(example, tmp_path):
    from PIL import Image

    folder = tmp_path / "images"
    folder.mkdir()
    for i, pixels in enumerate(digits().X[:30].reshape(-1, 8, 8)):
        Image.fromarray((pixels[:, :6] * 15).astype(np.uint8)).save(folder / f"{i:02}.png")
    assert "30 images of 8x6" in example("eigenfaces", folder, pictures=FACES)


def test_an_archive_of_no_squares_is_refused(example, tmp_path):
    np.savez(tmp_path / "odd.npz", X=digits().X[:, :60])
    with pytest.raises(SystemExit, match="60 pixels are not square images"):
        example("eigenfaces", tmp_path / "odd.npz", pictures=FACES)


def test_the_demo_goes_from_a_table_to_a_report(tmp_path, capfd):
    demo = runpy.run_path(str(Path(__file__).resolve().parents[2] / "examples/demo.py"))
    assert demo["main"](["--rows", "360", "--folder", str(tmp_path / "demo")]) == 0
    said = capfd.readouterr()
    assert said.err == ""
    for command in demo["COMMANDS"].values():
        assert f"$ lowland {command}\n" in said.out
    assert "digits.csv: TSNE of 300 rows" in (tmp_path / "demo/out/report.html").read_text("utf-8")
    assert len((tmp_path / "demo/later-map.csv").read_text().splitlines()) == 61
