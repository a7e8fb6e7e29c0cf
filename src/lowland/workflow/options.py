"""Options of a run, declared once for all functions and commands that make or judge a map."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lowland._base.constraints import Anything, Boolean, Choice, Integer, Real, Text
from lowland._base.errors import PYTHON, ParameterError, Spelling
from lowland._base.options import Options, option

if TYPE_CHECKING:
    from lowland.tables.options import TableOptions

ENGINES = ("auto", "memory", "stream", "dask")


@dataclasses.dataclass(frozen=True)
class RunSettings(Options):
    """The options of a run: how the map is made, turned, measured and colored.

    Parameters
    ----------
    color : str or array of shape (n_rows,), optional
        The column that colors the pictures; by default a label of classes. In Python also its
        values. By default it is ``target``, a label called class, target, species or the like, or
        the first label whose values recur.
    pca : int, "auto" or "none", default="auto"
        Columns to reduce to by PCA before the method; auto: 50 for neighbor methods.
    orient : str, mapping, path, data frame or array, optional
        Turn the map, mirrored if need be: "north=ROW,west=ROW", or a file of coordinates. Rows and
        their directions, such as "north=Stockholm,west=Lisbon" or {"north": "Stockholm"}; or known
        coordinates of some rows, joined by id, which the map is turned to match (Procrustes).
        Distances in the map stay as they are, and the model places new rows in the turned map.
    measure : bool, default=True
        Measure the map and judge where it can be believed; the command also writes a report.
    check : bool, default=False
        Refit on subsamples and on structureless data, to see what is stable and what is chance.
        Three fits take parts of the rows and other seeds, and one takes data without structure.
        This takes about as long as the map.
    engine : {"auto", "memory", "stream", "dask"}, default="auto"
        Read the whole table, or chunks of rows (dask: by workers); auto: chunks if need be.
        "memory" reads the whole table. "stream" reads files in chunks, and "dask" lets workers do
        so. "auto" is "memory" if the table and its map fit in memory, else "stream".
    scheduler : str, optional
        For the engine dask: tcp://HOST:8786, or local:4 for four processes on this machine.
    sample : int, optional
        Read rows in chunks and fit the method to so many of them; all are placed. By default all
        rows, or as many as a method takes that needs its rows in memory.
    refine : int, optional
        Steps that move all rows after they are placed, for t-SNE of rows that are read in chunks.
    resume : bool, default=False
        Go on with a run that was stopped while it placed rows.
    seed : int, default=0
        Seed of everything random.
    n_jobs : int or None, default=None
        Threads; by default all cores. The map does not depend on it.
    verbose : bool, default=False
        Show progress.
    """

    color: Any = option(Anything(), metavar="COLUMN")
    pca: Any = option(
        Integer(1) | Choice("auto", "none"), default="auto", metavar="N", group="preparation"
    )
    orient: Any = option(Anything(), metavar="HOW", group="map")
    measure: bool = option(Boolean(), default=True, group="output")
    check: bool = option(Boolean(), default=False, group="map")
    engine: str = option(Choice(*ENGINES), default="auto", group="large tables")
    scheduler: str | None = option(Text("a text"), metavar="ADDRESS", group="large tables")
    sample: int | None = option(Integer(1), metavar="N", group="large tables")
    refine: int | None = option(Integer(1), metavar="STEPS", group="large tables")
    resume: bool = option(Boolean(), default=False, group="large tables")
    seed: int = option(Integer(0), default=0, metavar="N")
    n_jobs: int | None = option(Integer(), metavar="N", group="map")
    verbose: bool = option(Boolean(), default=False, group=None)
    spelling: Spelling = PYTHON

    def __post_init__(self) -> None:
        super().__post_init__()
        say = self.spelling.option
        if self.check and not self.measure:
            raise ParameterError(
                f"{say('check')}: a map that is not measured is not checked; leave it out, or "
                "measure the map."
            )
        for name in ("sample", "refine", "resume"):
            if self.engine == "memory" and getattr(self, name):
                raise ParameterError(
                    f"{say(name)}: is for rows that are read in chunks; leave it out, or "
                    f"{say('engine', 'memory')}."
                )
        if self.scheduler is not None and self.engine != "dask":
            raise ParameterError(
                f"{say('scheduler')}: is for {say('engine', 'dask')}; add that, or leave it out."
            )
        if self.engine == "dask" and not self.scheduler:
            raise ParameterError(
                f"{say('engine', 'dask')} needs a scheduler: {say('scheduler', 'local:4')} starts "
                f"four processes here, {say('scheduler', 'tcp://HOST:8786')} uses a cluster."
            )

    @property
    def asks_for_chunks(self) -> bool:
        """Whether the user asked for rows to be read in chunks."""
        return self.engine in ("stream", "dask") or self.sample is not None

    @property
    def chunk_engine(self) -> str:
        """What goes through rows that are read in chunks."""
        return "dask" if self.engine == "dask" else "stream"

    def running(self) -> contextlib.AbstractContextManager[Any]:
        """The engine, for a ``with`` block around everything that goes through rows in chunks."""
        if self.engine != "dask":
            return contextlib.nullcontext()
        try:
            from lowland.chunks import Dask  # type: ignore[attr-defined, unused-ignore]
        except ImportError as error:
            raise ParameterError(
                f"{self.spelling.option('engine', 'dask')}: distributed is not installed; "
                "pip install 'lowland[dask]'."
            ) from error
        return Dask(self.scheduler)

    @property
    def look(self) -> dict[str, Any]:
        """What was asked for of the points in all pictures of a map."""
        given = self.changed()
        return {name: given[name] for name in PICTURES if name in given}

    @property
    def of_methods(self) -> dict[str, Any]:
        """The parameters that all methods have."""
        return {"random_state": self.seed, "n_jobs": self.n_jobs, "verbose": self.verbose}

    def of(
        self, table: TableOptions, command: str, note: Callable[[str], None] | None = None
    ) -> RunOptions:
        """Everything about a run; a color that is given as values joins the labels."""
        table, color = table.naming(self.color, "color")
        return RunOptions(table, dataclasses.replace(self, color=color), command, note or ignore)


def ignore(note: str) -> None:
    """Where notes go if the caller does not take them."""


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """Everything about a run except the data, the method and its parameters."""

    table: TableOptions
    settings: RunSettings
    command: str = ""  # reproduces the run; shown in the report
    note: Callable[[str], None] = ignore  # told what a person should know while the run goes on


@dataclasses.dataclass(frozen=True)
class Matching(Options):
    """How the rows of several tables belong together.

    Parameters
    ----------
    match : str or sequence of str, optional
        The column of ids by which rows are matched; "left=right" if its names differ. In Python
        also one name per table. 7, 7.0 and " 7" are the same id. Rows whose id occurs twice in
        their table, or in no other table, take part without a partner.
    same_order : bool, default=False
        Row i of each table is the same object.
    hold_out : float, default=0.2
        Share of the pairs that are held out to measure the alignment. At most 2000 pairs are held
        out; 0 holds none out.
    names : sequence of str, optional
        What the tables are called; by default as their files.
    """

    match: Any = option(Anything(), metavar="COLUMN")
    same_order: bool = option(Boolean(), default=False)
    hold_out: float = option(Real(0, 0.9, "both"), default=0.2, metavar="SHARE")
    names: Any = option(Anything(), group=None)
    spelling: Spelling = PYTHON


# Options about the points in the pictures of a map; drawn by ``plot._points.point_style``.
PICTURES = tuple(
    name for name, declared in RunSettings.declared().items() if declared.group == "pictures"
)
# What functions take; the commands take what a text can say, and show progress on a terminal.
FITTING = ("seed", "n_jobs", "verbose")
COMPARING = ("color", "pca", *FITTING)
ALIGNED = ("color", "measure", *FITTING)
MAKING = (
    "color",
    *PICTURES,
    "pca",
    "orient",
    "measure",
    "check",
    *FITTING,
    "engine",
    "scheduler",
    "sample",
)
