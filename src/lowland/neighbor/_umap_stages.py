"""The stages of UMAP's descent: how strong the attraction is, and how long the steps are."""

from __future__ import annotations

from lowland._engines.embedding.descent import Stage

# Shares of the steps with an exaggerated attraction: the factor, the momentum, and the step length.
# As in t-SNE, exaggeration first lets clusters find each other; the loss ends lower.
STAGES = ((0.2, 4.0, 0.8, 0.1), (0.1, 2.0, 0.8, 0.2), (0.7, 1.0, 0.9, 0.2))
# Two forces need a calm end of the descent, with short steps that fall to 0. That of the densities
# is stiff in dense clusters: with the momentum of the other steps these swing and grow. That of
# drawn pairs is noisy: rows would stay as far from their places as a step is long.
CALM_SHARE, CALM_MOMENTUM, CALM_RATE, CALM_PARTS = 0.3, 0.5, 0.1, 10


def calm_start(steps: int) -> int:
    """The first step of the calm end, from which on densities count."""
    return round((1 - CALM_SHARE) * steps)


def umap_stages(steps: int, given: bool, calm: bool) -> list[Stage]:
    """The stages of so many steps; from a given map without exaggeration, which would undo it."""
    plain = calm_start(steps) if calm else steps
    first, second = (0, 0) if given else (round(share * steps) for share, *_ in STAGES[:2])
    counts = (first, second, plain - first - second)
    stages = [
        Stage(count, factor, momentum, False, rate)
        for count, (_, factor, momentum, rate) in zip(counts, STAGES, strict=True)
    ]
    parts = CALM_PARTS if calm else 0
    ends = [plain + round((part + 1) / parts * (steps - plain)) for part in range(parts)]
    for part, (start, end) in enumerate(zip([plain, *ends], ends, strict=False)):
        rate = CALM_RATE * (1 - part / parts)
        stages.append(Stage(end - start, 1.0, CALM_MOMENTUM, False, rate))
    return stages
