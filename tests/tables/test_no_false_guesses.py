"""No measurement is set aside in bundled tables, and in imitations of well-known ones."""

from __future__ import annotations

import numpy as np
import polars as pl

from lowland import datasets
from lowland.tables import as_table, read_table
from lowland.tables.columns.categories import why_refused
from lowland.tables.options import TableOptions
from support.cases import each

TABLES = [name for name in datasets.names() if not datasets.load_dataset(name).distances]
ROWS = 150


def whole(low, high):
    return lambda rng: rng.integers(low, high + 1, ROWS)


def real(mean, deviation=1.0):
    return lambda rng: rng.normal(mean, deviation, ROWS).round(2)


def text(*values):
    return lambda rng: rng.choice(values, ROWS)


def count(start=1, step=1):
    return lambda rng: np.arange(start, start + step * ROWS, step)


def different(low, high):
    return lambda rng: rng.permutation(np.arange(low, high))[:ROWS]


# Known tables: columns by name, and which of them are not features.
KNOWN = {
    "mtcars": (
        {"mpg": real(20), "cyl": lambda rng: rng.choice([4, 6, 8], ROWS), "disp": real(230, 100),
         "hp": whole(52, 335), "drat": real(3.6), "wt": real(3.2), "qsec": real(17),
         "vs": whole(0, 1), "am": whole(0, 1), "gear": whole(3, 5), "carb": whole(1, 8)},
        [],
    ),
    "houses": (
        {"id": different(10**6, 10**6 + 5000), "price": whole(10**5, 10**6),
         "bedrooms": whole(1, 6), "bathrooms": real(2), "sqft_living": whole(500, 5000),
         "floors": real(1.5),
         "waterfront": whole(0, 1), "view": whole(0, 4), "condition": whole(1, 5),
         "grade": whole(3, 13), "yr_built": whole(1900, 2015), "zipcode": whole(98001, 98199),
         "lat": real(47), "long": real(-122)},
        ["id", "zipcode"],
    ),
    "titanic": (
        {"PassengerId": count(), "Survived": whole(0, 1), "Pclass": whole(1, 3),
         "Sex": text("male", "female"), "Age": real(30, 12), "SibSp": whole(0, 5),
         "Parch": whole(0, 5), "Fare": real(30, 20)},
        ["PassengerId", "Sex"],
    ),
    "penguins": (
        {"species": text("Adelie", "Gentoo"), "island": text("Biscoe", "Dream"),
         "bill_length_mm": real(44), "flipper_length_mm": whole(170, 230),
         "body_mass_g": whole(2700, 6300), "sex": text("male", "female"),
         "year": whole(2007, 2009)},
        ["species", "island", "sex"],
    ),
    "diabetes": (
        {"Pregnancies": whole(0, 17), "Glucose": whole(44, 199), "BMI": real(32),
         "DiabetesPedigreeFunction": real(0.5, 0.2), "Age": whole(21, 81), "Outcome": whole(0, 1)},
        ["Outcome"],
    ),
    "air": (
        {"NO": whole(1, 400), "NO2": whole(1, 200), "O3": whole(0, 120), "PM10": whole(1, 90),
         "month": whole(1, 12), "day": whole(1, 31), "hour": whole(0, 23)},
        [],
    ),
    "a time series": (
        {"t": count(0), "open": real(100), "high": real(101), "low": real(99),
         "volume": different(10**5, 10**6)},
        [],
    ),
    "songs": (
        {"danceability": real(0.5, 0.1), "key": whole(0, 11), "mode": whole(0, 1),
         "time_signature": whole(3, 5), "tempo": real(120, 20), "popularity": whole(0, 100)},
        [],
    ),
    "fraud": (
        {**{f"id_{i:02d}": whole(-100, 0) for i in range(1, 12)},
         "TransactionID": different(10**6, 3 * 10**6), "TransactionAmt": real(100, 30),
         **{f"V{i}": whole(0, 5) for i in range(1, 30)}},
        ["TransactionID"],
    ),
    "a grid": (
        {"row": lambda rng: np.arange(ROWS) // 10, "col": lambda rng: np.arange(ROWS) % 10,
         "value": real(0), "error": real(1)},
        [],
    ),
    "a trajectory": (
        {"x": count(), "y": lambda rng: np.arange(ROWS) % 5, "z": real(0), "speed": real(3)}, [],
    ),
}  # fmt: skip


@each("name", list(KNOWN))
def test_known_tables_keep_their_measurements(name):
    columns, apart = KNOWN[name]
    rng = np.random.default_rng(len(name))
    frame = pl.DataFrame({column: make(rng) for column, make in columns.items()})
    table = as_table(frame)
    assert list(table.feature_names) == [column for column in columns if column not in apart]
    assert why_refused(table, TableOptions()) is None


@each("name", TABLES)
@each("change", ["as it is", "rounded", "transposed"])
def test_bundled_tables_keep_their_measurements(name, change):
    data = datasets.load_dataset(name)
    values = np.rint(data.X).astype(np.int64) if change == "rounded" else data.X
    frame = pl.from_numpy(np.ascontiguousarray(values), schema=list(data.feature_names))
    if change == "transposed":
        frame = frame.head(300).transpose(
            column_names=[f"r{i}" for i in range(min(300, len(data.X)))]
        )
    table = as_table(frame)
    assert (table.guesses, list(table.feature_names)) == ((), frame.columns)


def test_the_names_of_a_bundled_table_are_given_not_guessed():
    assert all(not read_table(name).notes for name in TABLES)
