"""Published costs: right in order of magnitude, and growing with the work."""

import math
import time

import numpy as np
import pytest

from lowland._engines.embedding.repulsion import pairwise_repulsion, repulsion_cost
from lowland._engines.graphs.geodesics import shortest_paths, shortest_paths_cost
from lowland._engines.graphs.weights import symmetrize
from lowland._engines.neighbors.search import neighbor_graph, neighbor_graph_cost


def cpu_seconds(run):
    """The least of three runs, in CPU time of one thread, halved: two cores share the work."""
    times = []
    for _ in range(3):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times) / 2


@pytest.mark.slow
def test_costs_have_the_order_of_magnitude_of_a_measurement(irregular):
    """A factor of 10 either way: processors differ, and other processes use the caches."""
    X = irregular(6000, 30)
    graph = neighbor_graph(X, 30)
    edges = symmetrize(graph)
    Y = np.random.default_rng(0).standard_normal((6000, 2)).astype(np.float32)
    potential, forces = np.empty(6000), np.empty_like(Y)
    repel = pairwise_repulsion(1.0, 1)
    measured = {
        cpu_seconds(lambda: neighbor_graph(X, 30)): neighbor_graph_cost(6000, 30, 30),
        cpu_seconds(lambda: repel(Y, potential, forces)): repulsion_cost(6000, 2, method="exact"),
        cpu_seconds(lambda: shortest_paths(edges, np.arange(320))): shortest_paths_cost(
            320, 6000, 30
        ),
    }
    for seconds, cost in measured.items():
        assert abs(math.log10(cost.seconds / seconds)) < 1


@pytest.mark.parametrize("p", [5, 50, 500])
def test_a_search_of_more_rows_columns_or_neighbors_costs_more(p):
    for sizes in ([100, 1000, 10_000, 199_999], [600_000, 2_000_000]):  # of one algorithm each
        found = [neighbor_graph_cost(n, p, 15) for n in sizes]
        costs = [(cost.seconds, cost.n_bytes) for cost in found]
        assert (np.diff(costs, axis=0) > 0).all()
    cost = neighbor_graph_cost(10_000, p, 15)
    assert neighbor_graph_cost(10_000, p, 90).seconds > cost.seconds
    assert neighbor_graph_cost(10_000, 2 * p, 15).seconds > cost.seconds


def test_the_cheapest_repulsion_is_chosen():
    for n in (100, 3000, 100_000):
        every = [repulsion_cost(n, 2, method=m).seconds for m in ("exact", "barnes_hut", "mesh")]
        assert repulsion_cost(n, 2).seconds == min(every)
    assert repulsion_cost(10_000, 5).seconds == repulsion_cost(10_000, 5, method="exact").seconds
