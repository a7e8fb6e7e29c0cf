"""What columns hold by their type; whole numbers that are not measurements: ids, classes.

Only whole numbers (or text, for an id) are looked at: a column with fractions is a feature.

| a column is | by its name (``name_rules``) | if its values are |
| --- | --- | --- |
| an id | article_id, barcode, zip | any |
| an id | index, case, event, oil_no | all different |
| an id | any but of time, place, grids | a sequence over 30 rows or more: see ``_order`` |
| a class | class, label, cluster, leiden | any |
| a class | type, region, target, y without x | at most sqrt(rows) and 30, and recurring |
| perhaps a class | any other but a quantity | 3 to 10 codes, from 0 or 1 without a gap |

Measurements come first in doubt: several columns in sequence are ranks, and stay features.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lowland._base.errors import PYTHON, Spelling, listing

if TYPE_CHECKING:
    import polars as pl

# Words in the name of a column that suggest an id, a class or a measurement.
#
# A name is split into words at underscores, blanks, dots, digits and capitals: ``articleId``,
# ``article_id`` and ``Article ID`` are the words article and id.


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# An id or a class whatever the values are; an id if no value occurs twice, a class of few values.
ID, CLASS, COUNTER, CODE = "id", "class", "counter", "code"
WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^\W\d_A-Z]+|[A-Z]+|\d+")

# The last word of an id, whatever the values are, as long as they are whole numbers or text.
ID_WORDS = _words(
    "id uuid guid barcode isbn ean ssn zip zipcode postcode plz rownames rowname rowid userid "
    "patientid customerid sampleid cellid recordid caseid subjectid studentid orderid "
    "productid itemid eventid passengerid"
)
ID_PAIRS = {
    ("zip", "code"),
    ("postal", "code"),
    ("post", "code"),
    ("row", "names"),
    ("row", "name"),
}
# Names that are those of an id only if no value occurs twice.
COUNTER_NAMES = _words(
    "index idx row case event sample record observation obs key number no nr num phone "
    "telephone ticket serial rownumber"
)
COUNTER_ENDS = frozenset(["no", "nr", "idx", "key"])  # oil_no, house nr
NUMBER_ENDS = frozenset(["number", "num"])  # case_number, but not Reynolds number
NUMBERED = _words(
    "row case event sample record serial account order ticket invoice customer patient "
    "student phone line item subject respondent participant"
)
UNNAMED = "unnamed"  # pandas writes an index without a name as "Unnamed: 0"

# The last word of a class, whatever the values are, as long as they are whole numbers.
CLASS_WORDS = frozenset(["class", "label", "cluster"])
CLUSTERINGS = frozenset(["leiden", "louvain", "snn"])  # leiden_0.5, RNA_snn_res.0.8
# The last word of a class if the column has few values.
FEW_VALUED = _words(
    "classes labels clusters species type region area target group grp category outcome "
    "diagnosis code gender sex kind "
    "variety cultivar strain batch digit fold split stratum country district zone sector race "
    "ethnicity nationality religion"
)
# Of several labels, the one that colors a map.
THE_CLASS = _words("class classes label labels cluster clusters target species diagnosis type y")
CODES = frozenset(["id", "code", "no", "nr", "number", "index", "idx", "num"])  # after such a word

# Variables of time, place or a grid: they may run in sequence and are measured all the same.
MEASURED = _words(
    "time t timestamp ts date year yr years quarter month week day days hour hours minute "
    "minutes second seconds sec s ms age depth height altitude elevation distance dist "
    "position pos x y z lat latitude lon lng longitude angle deg degree degrees "
    "temperature temp pressure dose concentration conc wavelength wavenumber nm mz frequency "
    "freq hz energy voltage volt current step epoch iteration iter generation cycle lag "
    "length width size weight mass speed count level atomic n k jahr monat woche tag tage "
    "stunde stunden zeit alter tiefe annee mois jour heure temps ano mes dia hora tiempo"
)
# Whole numbers of few values that are quantities, not codes.
QUANTITIES = _words(
    "num number rating score grade rank quality stars points children kids rooms bedrooms "
    "bathrooms floors doors weekday stage severity degree pain satisfaction frequency persons "
    "people household dependents siblings parity visits items pieces"
)
COUNTING = frozenset(["n", "num", "number", "count", "has", "is"])  # n_id, has_id, n_clusters


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case.

    >>> words_of("PassengerId"), words_of("oil_no"), words_of("UMAP 1")
    (('passenger', 'id'), ('oil', 'no'), ('umap', '1'))
    """
    return tuple(word.lower() for word in WORD.findall(name))


def said_by(words: tuple[str, ...]) -> set[str]:
    """What a name suggests about whole numbers: one of the four below, several, or nothing."""
    found: set[str] = set()
    if not words:
        return found
    if len(words) == 1 or words[0] not in COUNTING:  # else it says how many, or whether one
        first = words[0] == "id" and not words[-1].isdecimal()  # id_patient; id_01 may be anything
        if first or words[-1] in ID_WORDS or words[-2:] in ID_PAIRS:
            found.add(ID)
        if _main_word(words) in CLASS_WORDS or not CLUSTERINGS.isdisjoint(words):
            found.add(CLASS)
        if _main_word(words) in FEW_VALUED:
            found.add(CODE)
    if len(words) == 1:
        counts = words[0] in COUNTER_NAMES
    else:
        numbered = words[-1] in NUMBER_ENDS and words[-2] in NUMBERED
        ended = words[-1] in COUNTER_ENDS and MEASURED.isdisjoint(words)
        counts = numbered or ended or (words[0] == UNNAMED and words[-1].isdecimal())
    return found | {COUNTER} if counts else found


def _main_word(words: tuple[str, ...]) -> str:
    """The last word, or the one before ``id`` or ``code``: cell_type, cluster_id."""
    coded = len(words) > 1 and words[-1] in CODES
    known = coded and words[-2] in CLASS_WORDS | FEW_VALUED
    return words[-2] if known else words[-1]


def is_the_class(name: str) -> bool:
    """Whether a label of this name is what the rows are about."""
    words = words_of(name)
    return bool(words) and (_main_word(words) in THE_CLASS or not CLUSTERINGS.isdisjoint(words))


def speaks_of_a_role(name: str) -> bool:
    """Whether the values of a column should be looked at because of its name."""
    words = words_of(name)
    return bool(said_by(words)) or words == ("y",)


SCREENED = 64  # rows that show that a column is not a sequence; nearly no column is one
FEWEST_ROWS = 30  # of a sequence that no name confirms
SHUFFLED_ROWS = 50  # of a sequence whose rows are not in order
SORTED_SHARE, SHUFFLED_SHARE = 0.5, 0.9  # of the numbers between the least and the greatest
FEWEST_IDS = 3  # of two rows, values that differ tell nothing
MOST_CLASSES = 30
MOST_NAMED = 20  # if more columns are called so, the names tell nothing
HINTED_COUNTS = range(3, 11)  # numbers of values that get a hint
NO_NAMES = ("column",)  # of columns that the reader has numbered
WIDEST_HINT, MOST_HINTS, HINT_ROWS = 64, 3, 30


class Guess(NamedTuple):
    """A column that is set aside automatically."""

    name: str
    role: str  # "id", "identifier" (an id, but not that of the rows) or "class"
    reason: str
    is_text: bool = False

    def note(self, spelling: Spelling = PYTHON) -> str:
        """The guess for a person, with the option that takes it back."""
        role = {"id": "the row id", "identifier": "a label", "class": "a label"}[self.role]
        back = f"; {spelling.columns('use', [self.name])} maps it"
        return f"column {self.name!r} is taken as {role}: {self.reason}{back}"


def guess_roles(
    frame: pl.DataFrame, candidates: Sequence[str], *, needs_id: bool, names_only: bool = False
) -> list[Guess]:
    """Which of the candidates are not features; the row id, if one is needed, comes first.

    ``names_only`` leaves out the columns of which only the values tell that they are ids.
    """
    import polars as pl

    schema = frame.schema  # made anew by every call
    spoken = {name: words_of(name) for name in candidates}
    says = {name: said_by(words) for name, words in spoken.items()}
    numbers = [name for name in candidates if schema[name].is_integer() or schema[name].is_float()]
    flags = [name for name in candidates if schema[name] == pl.Boolean]
    guesses = _classes(frame, {name: says[name] for name in [*numbers, *flags]}, spoken)
    apart = {guess.name for guess in guesses}
    ids: list[tuple[int, Guess]] = []  # the surest have the lowest number
    for name in candidates:
        dtype = schema[name]
        if name in apart or says[name].isdisjoint((ID, COUNTER)):
            continue
        if is_text(dtype) or dtype.is_integer() or dtype.is_float():
            found = _named_id(frame[name], spoken[name])
            if found is not None:
                ids.append((found[0], Guess(name, "identifier", found[1], is_text(dtype))))
    apart |= {guess.name for _, guess in ids}
    left = [name for name in numbers if name not in apart]
    if not names_only:
        counted = [name for name in _sequences(frame, left) if MEASURED.isdisjoint(spoken[name])]
        # a map of one column says less than the sequence may mean; text may be mapped instead
        if counted and (len(left) - len(counted) >= 2 or _has_categories(frame)):
            reason = "its values are unique whole numbers in sequence"
            ids += [(3, Guess(name, "identifier", reason)) for name in counted]
    surest = (guess for _, guess in sorted(ids, key=lambda pair: pair[0]))
    unique = (guess for guess in surest if needs_id and _all_different(frame[guess.name]))
    row_id = next(unique, None)
    rest = [guess for _, guess in ids if guess is not row_id and not guess.is_text]
    return [*([] if row_id is None else [row_id._replace(role="id")]), *rest, *guesses]


def _has_categories(frame: pl.DataFrame) -> bool:
    """Whether two columns of text have values that recur, and may be mapped instead of numbers."""
    texts = (column for column in frame.iter_columns() if is_text(column.dtype))
    recurring = (column for column in texts if column.n_unique() <= max(2, len(column) // 2))
    return len(list(itertools.islice(recurring, 2))) == 2


def _all_different(column: pl.Series) -> bool:
    return not column.has_nulls() and column.n_unique() == len(column)


def _named_id(column: pl.Series, words: tuple[str, ...]) -> tuple[int, str] | None:
    """How sure the name is, the surest first, and the reason; None for no id."""
    if is_text(column.dtype):  # a label at any rate; the row id if it has one value per row
        return 0, "its name suggests it, and no value occurs twice"
    if not _is_whole(column):
        return None
    different = _all_different(column)
    if ID in said_by(words):
        reason = "its name is that of an id"
        return 0, f"{reason}, and no value occurs twice" if different else reason
    if not different or len(column) < FEWEST_IDS:
        return None
    rank = 2 if words[0] in (UNNAMED, "index", "row") else 1
    return rank, "its name may be that of an id, and no value occurs twice"


def _classes(
    frame: pl.DataFrame, says: dict[str, set[str]], spoken: dict[str, tuple[str, ...]]
) -> list[Guess]:
    beside_x = ("x",) in spoken.values()
    found = []
    for name, said in says.items():
        target = spoken[name] == ("y",) and not beside_x  # beside x it is a coordinate
        if not (target or {CLASS, CODE} & said) or not _is_whole(column := frame[name]):
            continue
        known = column.drop_nulls()
        most = min(MOST_CLASSES, max(2, int(len(known) ** 0.5)), len(known) - 1)  # some recur
        if CLASS in said or known.n_unique() <= most:
            reason = "its name is that of a class, and its values are whole numbers"
            found.append(Guess(name, "class", reason))
    return found if len(found) <= MOST_NAMED else []


def _is_whole(column: pl.Series) -> bool:
    """Whether the known values are whole numbers, in any type; NaN is not known."""
    if not column.dtype.is_float():
        return column.null_count() < len(column)
    known = column.drop_nulls().drop_nans()
    return len(known) > 0 and bool((known.is_finite() & (known == known.round())).all())


def _sequences(frame: pl.DataFrame, names: list[str]) -> list[str]:
    """Columns that count the rows; none if several do so in different orders, as ranks do."""
    if frame.height < FEWEST_ROWS or not names:
        return []
    # Most columns of a wide table repeat a value, or have fractions, within a few rows.
    head = frame.head(SCREENED)[names].to_numpy().astype(np.float64, copy=False)
    ordered = np.sort(head, axis=0)  # NaN comes last
    with np.errstate(invalid="ignore"):
        whole = (np.isfinite(head) & (head == np.floor(head))).all(axis=0)
        unique = (ordered[1:] != ordered[:-1]).all(axis=0)
    orders = {names[i]: _order(frame[names[i]]) for i in np.flatnonzero(whole & unique)}
    found = [name for name, order in orders.items() if order]
    shuffled = [name for name in found if orders[name] == "shuffled"]
    return found if not shuffled or len(found) == 1 else []


def _order(column: pl.Series) -> str:
    """``sorted`` or ``shuffled`` if the values are a sequence with few gaps, else nothing."""
    if column.null_count() or not _is_whole(column):
        return ""
    n, low, high = len(column), int(column.min()), int(column.max())  # type: ignore[arg-type]
    span = high - low + 1
    if low < 0 or high > 2**53 or span > n / SORTED_SHARE:  # ids are never negative
        return ""
    places = (column.to_numpy().astype(np.float64) - low).astype(np.int64)
    seen = np.zeros(span, bool)
    seen[places] = True
    if seen.sum() < n:
        return ""
    steps = np.diff(places)
    if (steps > 0).all() or (steps < 0).all():
        return "sorted"
    return "shuffled" if n >= SHUFFLED_ROWS and n >= SHUFFLED_SHARE * span else ""


def _stem(name: str) -> tuple[str, ...]:
    """The words of a name without its numbers: pixel_0_1 and pixel_4_6 have the same."""
    return tuple(word for word in words_of(name) if not word.isdecimal())


def coded_columns(frame: pl.DataFrame, features: Sequence[str]) -> list[tuple[str, int]]:
    """Features that may be classes, with their numbers of values, for a hint.

    Nothing where the hint would be wrong more often than right: in wide tables, in small ones, and
    if many columns are like that, as in a survey.
    """
    if not frame.height >= HINT_ROWS or len(features) > WIDEST_HINT:
        return []
    alike = Counter(map(_stem, features))
    found = []
    for name in features:
        column = frame[name]
        quantity = not (MEASURED | QUANTITIES).isdisjoint(words_of(name))
        if not column.dtype.is_integer() or quantity:
            continue
        if alike[_stem(name)] > 1 and _stem(name) != NO_NAMES:  # one of many, such as pixels
            continue
        low, high = column.min(), column.max()
        if low not in (0, 1) or high - low + 1 not in HINTED_COUNTS:  # type: ignore[operator]
            continue
        counts = column.drop_nulls().value_counts()["count"]
        values = len(counts)
        # of rounded measurements, some values are rare
        if values == high - low + 1 and counts.min() * 10 * values >= len(column):  # type: ignore[operator]
            found.append((name, values))
    few = len(found) <= MOST_HINTS and len(found) < len(features) / 2
    return found if few else []


def is_text(dtype: pl.DataType) -> bool:
    """Whether a column of this type holds text."""
    import polars as pl

    return dtype == pl.String


def is_number(dtype: pl.DataType) -> bool:
    """Whether a column of this type holds numbers or truth values, which may be features."""
    import polars as pl

    return dtype.is_numeric() or dtype == pl.Boolean


def holds_no_values(dtype: pl.DataType) -> bool:
    """Whether a column of this type is left out: nested or binary values have no role."""
    import polars as pl

    return dtype.is_nested() or dtype in (pl.Binary, pl.Object)


def described(schema: Mapping[str, pl.DataType]) -> str:
    """The names and types of columns, for a message."""
    return listing([f"{name!r} ({dtype})" for name, dtype in schema.items()], quote=False)


def kind_of(dtype: Any) -> str:
    """What the values of a column are, in a word."""
    import polars as pl

    if dtype == pl.Null:
        return "nothing"
    if is_number(dtype):
        return "numbers"
    if dtype.is_nested():
        return "lists"
    return "dates" if dtype.is_temporal() else "text"
