"""A fitted model that is saved before rows are placed, so that a run can go on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lowland._core.errors import DataError, LowlandError
from lowland._core.persistence.models import load
from lowland._core.rows.parts import MANIFEST

MODEL, RUN, PARTS, PLACED = "model.lowland", "run.json", "map", "placed"
PICTURE, REPORT = "map.png", "report.html"


def run_identity(facts: Mapping[str, Any]) -> str:
    """A name for a run: what decides about its bytes."""
    from lowland import __version__

    text = json.dumps({**facts, "lowland": __version__}, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


class Room:
    """A temporary folder that is removed with this object."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lowland-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)


class Home:
    """The folder of a run: the model, what is known about its fit, and the parts of the map."""

    def __init__(self, folder: Path, *, resume: bool, force: bool) -> None:
        self.folder, self.resume, self.force = folder, resume, force

    @property
    def model(self) -> Path:
        return self.folder / MODEL

    @property
    def parts(self) -> Path:
        return self.folder / PARTS

    @property
    def placed(self) -> Path:
        """Where parts wait that steps on all rows will move."""
        return self.folder / PLACED

    @property
    def begun(self) -> Path:
        """The file that is there once the model of a run was saved."""
        return self.folder / RUN

    def check(self, *, report: bool = True) -> None:
        """Refuse results that are there, unless they may be replaced or the run goes on."""
        if self.resume or self.force:
            return
        names = [MODEL, RUN, PARTS, PICTURE, *([REPORT] if report else [])]
        there = next((name for name in names if (self.folder / name).exists()), None)
        if there is not None:
            raise DataError(
                f"{self.folder / there}: exists already; overwrite it with force=True (--force), "
                "or go on with a run that was stopped with --resume."
            )

    def clear(self) -> None:
        """Remove the model and the parts of an older run, which may be replaced."""
        if self.resume or not self.force:
            return
        for path in (self.begun, self.model):
            path.unlink(missing_ok=True)
        for folder in (self.parts, self.placed):
            for part in (*folder.glob("part-*.parquet"), folder / MANIFEST):
                part.unlink(missing_ok=True)

    def saved(self, identity: str) -> tuple[Any, dict[str, Any]] | None:
        """The model of this run and what is known about its fit; None if it was not saved yet."""
        path = self.begun
        if not self.resume or not path.exists():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            same, facts = found["identity"] == identity, dict(found["fit"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}: cannot be read; choose another folder.") from error
        if not same:
            raise DataError(
                f"{self.folder}: holds another run (other files, options, seed or version); "
                "choose another folder, or start anew with --force instead of --resume."
            )
        try:
            return load(self.model), facts
        except (OSError, LowlandError) as error:
            raise DataError(f"{self.model}: cannot be read ({error}); start anew.") from error

    def save(self, model: Any, identity: str, facts: Mapping[str, Any]) -> Any:
        """Save the model; the result is the model as a later run would load it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.clear()
        unfinished = self.folder / f".{MODEL}-{uuid.uuid4().hex[:12]}.part"
        try:
            model.save(unfinished)
            os.replace(unfinished, self.model)
            unfinished.write_text(
                json.dumps({"identity": identity, "fit": dict(facts)}, indent=1), encoding="utf-8"
            )
            os.replace(unfinished, self.begun)
        finally:
            unfinished.unlink(missing_ok=True)
        return load(self.model)
