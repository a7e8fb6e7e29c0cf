"""The stages of UMAP's descent: how strong the attraction is, and how long the steps are."""

from __future__ import annotations

from lowland._engines.embedding.descent import Stage

__all__ = ["density_start", "umap_stages"]

# Shares of the steps with an exaggerated attraction: the factor, the momentum, and the step length.
# As in t-SNE, exaggeration first lets clusters find each other; the loss ends lower.
STAGES = ((0.2, 4.0, 0.8, 0.1), (0.1, 2.0, 0.8, 0.2), (0.7, 1.0, 0.9, 0.2))
DENSITY_SHARE = 0.3  # of the steps, at the end
# The force of the densities is stiff in dense clusters, where it changes within a short way. With
# the momentum of the other steps these clusters swing and grow; the steps must end at 0.
DENSITY_MOMENTUM, DENSITY_RATE, DENSITY_PARTS = 0.5, 0.1, 10


def density_start(steps: int) -> int:
    """The first step with densities."""
    return round((1 - DENSITY_SHARE) * steps)


def umap_stages(steps: int, given: bool, dense: bool) -> list[Stage]:
    """The stages of so many steps; from a given map without exaggeration, which would undo it."""
    plain = density_start(steps) if dense else steps
    first, second = (0, 0) if given else (round(share * steps) for share, *_ in STAGES[:2])
    counts = (first, second, plain - first - second)
    stages = [
        Stage(count, factor, momentum, False, rate)
        for count, (_, factor, momentum, rate) in zip(counts, STAGES, strict=True)
    ]
    parts = DENSITY_PARTS if dense else 0
    ends = [plain + round((part + 1) / parts * (steps - plain)) for part in range(parts)]
    for part, (start, end) in enumerate(zip([plain, *ends], ends, strict=False)):
        rate = DENSITY_RATE * (1 - part / parts)
        stages.append(Stage(end - start, 1.0, DENSITY_MOMENTUM, False, rate))
    return stages
