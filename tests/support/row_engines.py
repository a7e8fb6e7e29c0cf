"""Engines of tables in chunks that do what workers may do."""

from __future__ import annotations

import pickle

from lowland._base.rows.engines import run_task
from lowland._base.rows.folding import TreeFold


class Backward:
    """Runs the tasks from the last to the first, each of them twice, by pickle.

    So may workers that are faster than others, or that die and are replaced.
    """

    def run(self, job, monitor):
        found = {}
        for place in reversed(range(len(job.tasks))):
            for _ in range(2):
                task = job.tasks[place], job.work, job.argument(place), *job.steps
                found[place] = run_task(*pickle.loads(pickle.dumps(task)))
        return iter([pickle.loads(pickle.dumps(found[place])) for place in range(len(job.tasks))])

    def fold(self, job, merge, monitor):
        tree = TreeFold(merge)
        for result in self.run(job, monitor):
            tree.add(result)
        return tree.result()
