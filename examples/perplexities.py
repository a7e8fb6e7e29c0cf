"""t-SNE of one data set with five perplexities: the number of neighbors changes the map.

With 2 the map shows small clumps that are not in the data. From 5 to 50 it shows the same groups
in different places: believe the groups, not their places. With 100 small groups merge.

    python examples/perplexities.py
    python examples/perplexities.py --rows 500 --out pictures
"""

from __future__ import annotations

import argparse
from pathlib import Path

from lowland import TSNE
from lowland.datasets import digits
from lowland.metrics import Comparison, neighbor_recall
from lowland.plot import compare_maps, save_figure

PERPLEXITIES = (2, 5, 30, 50, 100)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=None, help="the first so many; default all")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for the picture")
    options = parser.parse_args(arguments)
    data = digits()
    X, labels = data.X[: options.rows], data.labels[: options.rows]
    maps = [TSNE(perplexity=p, random_state=0).fit_transform(X) for p in PERPLEXITIES]
    titles = [f"perplexity {p}" for p in PERPLEXITIES]
    save_figure(
        compare_maps(maps, titles, labels, label_name="digit"), options.out / "perplexities.png"
    )
    print("share of a point's k nearest neighbors that the map keeps:")
    for p, Y in zip(PERPLEXITIES, maps, strict=True):
        kept = neighbor_recall(Comparison(X, Y), n_neighbors=[5, 50])
        print(f"perplexity {p:3}: {kept[0]:4.0%} of 5, {kept[1]:4.0%} of 50")


if __name__ == "__main__":
    main()
