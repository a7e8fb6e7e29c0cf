"""Which column is a feature, which a label, which the row id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lowland._core.errors import DataError, unknown_name
from lowland._core.wording import listing
from lowland.io.contents import Contents, Request

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Roles"]


class Roles(NamedTuple):
    """Every column of a source in exactly one role."""

    features: list[str]
    labels: list[str]
    unused: list[str]
    dropped: list[str]
    id_name: str | None

    @classmethod
    def assign(cls, source: str, contents: Contents, request: Request) -> Roles:
        """Numbers are features, unless the source or the caller says otherwise; text is a label."""
        import polars as pl

        schema = contents.schema
        asked = [*request.labels, *([request.id_column] if request.id_column else [])]
        _check_names(source, [*schema, *contents.unread], asked)
        id_name = request.id_column or contents.id_name
        # A row id of the file is not a measurement, also if the user chose another id.
        given = {*request.labels, *contents.labels, contents.id_name} - set(request.columns or ())
        dropped = [
            name
            for name, dtype in schema.items()
            if dtype.is_nested() or dtype in (pl.Binary, pl.Object)
        ]
        apart = {*given, id_name}
        numeric = [
            name
            for name, dtype in schema.items()
            if (dtype.is_numeric() or dtype == pl.Boolean) and name not in apart
        ]
        asked_for = numeric if request.columns is None else list(request.columns)
        features = asked_for if contents.is_named else []
        if contents.is_named:
            _check_features(source, schema, features, numeric, request)
            numbers = set(numeric)
            features = [name for name in features if name in numbers]
        chosen = set(features)
        unused = [name for name in numeric if name not in chosen]
        taken = {*features, *unused, *dropped, id_name}
        labels = [name for name in schema if name not in taken]
        return cls(features, labels, [*unused, *contents.unread], dropped, id_name)


def _check_names(source: str, known: list[str], asked: Sequence[str]) -> None:
    for name in asked:
        if name not in known:
            if not known:
                raise DataError(f"{source}: its columns have no names, so there is no {name!r}.")
            raise DataError(f"{source}: {unknown_name('column', name, known)}")


def _check_features(
    source: str,
    schema: Mapping[str, pl.DataType],
    features: list[str],
    numeric: list[str],
    request: Request,
) -> None:
    missing = [name for name in features if name not in schema]
    if missing:
        noun = "column is" if len(missing) == 1 else "columns are"
        raise DataError(f"{source}: {len(missing)} needed {noun} missing: {listing(missing)}.")
    numbers = set(numeric)
    text = [name for name in features if name not in numbers]
    if text and not request.allow_text:
        raise DataError(
            f"{source}: column {text[0]!r} must hold numbers, but its type is {schema[text[0]]}."
        )
    if not features and not request.allow_text:
        found = [f"{name!r} ({dtype})" for name, dtype in schema.items()]
        raise DataError(f"{source}: no column of numbers; found {listing(found, quote=False)}.")
