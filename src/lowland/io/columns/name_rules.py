"""What the name of a column says about it: the words of ids, of classes and of measurements.

A name is split into words at underscores, blanks, dots, digits and capitals: ``articleId``,
``article_id`` and ``Article ID`` are the words article and id.
"""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^\W\d_A-Z]+|[A-Z]+|\d+")

# The last word of an id, whatever the values are, as long as they are whole numbers or text.
ID_WORDS = _words(
    "id uuid guid barcode isbn ean ssn zip zipcode postcode plz rownames rowname rowid userid "
    "patientid customerid sampleid cellid recordid caseid subjectid studentid orderid "
    "productid itemid eventid passengerid"
)
ID_PAIRS = frozenset(
    [("zip", "code"), ("postal", "code"), ("post", "code"), ("row", "names"), ("row", "name")]
)
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


def names_an_id(words: tuple[str, ...]) -> bool:
    """Whether the name alone says that the column identifies something."""
    if not words or _is_counted(words):
        return False
    if words[-1] in ID_WORDS or words[-2:] in ID_PAIRS:
        return True
    return words[0] == "id" and not words[1].isdecimal()  # id_patient; id_01 may be anything


def may_be_id(words: tuple[str, ...]) -> bool:
    """Whether the name is that of an id if no value occurs twice."""
    if not words:
        return False
    if len(words) == 1:
        return words[0] in COUNTER_NAMES
    if words[0] == UNNAMED and words[-1].isdecimal():
        return True
    numbered = words[-1] in NUMBER_ENDS and words[-2] in NUMBERED
    return numbered or (words[-1] in COUNTER_ENDS and MEASURED.isdisjoint(words))


def names_a_class(words: tuple[str, ...]) -> bool:
    """Whether whole numbers under this name are classes."""
    if not words or _is_counted(words):
        return False
    return _main_word(words) in CLASS_WORDS or not CLUSTERINGS.isdisjoint(words)


def codes_a_class(words: tuple[str, ...]) -> bool:
    """Whether few whole numbers under this name are classes."""
    return bool(words) and not _is_counted(words) and _main_word(words) in FEW_VALUED


def _is_counted(words: tuple[str, ...]) -> bool:
    """Whether the column says how many there are, or whether there is one."""
    return len(words) > 1 and words[0] in COUNTING


def _main_word(words: tuple[str, ...]) -> str:
    """The last word, or the one before ``id`` or ``code``: cell_type, cluster_id."""
    coded = len(words) > 1 and words[-1] in CODES
    known = coded and words[-2] in CLASS_WORDS | FEW_VALUED
    return words[-2] if known else words[-1]


def is_measured(words: tuple[str, ...]) -> bool:
    """Whether the name is that of a variable that may run in sequence, such as a year."""
    return not MEASURED.isdisjoint(words)


def counts_or_rates(words: tuple[str, ...]) -> bool:
    """Whether few whole numbers under this name are a quantity."""
    return not (MEASURED.isdisjoint(words) and QUANTITIES.isdisjoint(words))


def is_the_class(name: str) -> bool:
    """Whether a label of this name is what the rows are about."""
    words = words_of(name)
    return bool(words) and (_main_word(words) in THE_CLASS or not CLUSTERINGS.isdisjoint(words))


def speaks_of_a_role(name: str) -> bool:
    """Whether the values of a column should be looked at because of its name."""
    words = words_of(name)
    return (
        names_an_id(words)
        or may_be_id(words)
        or names_a_class(words)
        or codes_a_class(words)
        or words == ("y",)
    )
