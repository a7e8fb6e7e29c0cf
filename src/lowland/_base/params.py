"""Declared parameters: one line gives the default and the constraint, the docstring the meaning.

    n_neighbors: int = param(Integer(1), default=10)

:class:`Declared` turns such lines into a real ``__init__`` that only stores (a dataclass), and
inherits ``get_params``, ``set_params``, ``repr`` and checks whose messages are generated from the
constraint. The command line reads the same declarations to parse its options. ``fitted`` declares
what ``fit`` leaves behind, with its shape and checks, so that a loaded model file can be checked
against it.
"""

from __future__ import annotations

import dataclasses
import inspect
import numbers
import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple, dataclass_transform

from lowland._base.constraints import LARGE, Constraint
from lowland._base.errors import ParameterError, shown, unknown_name

# Parameters and fitted attributes are documented once, where they are declared.
#
# A class documents its own parameters and attributes in numpydoc sections. Family bases do the same
# for what they declare, and :data:`GLOSSARY` holds what several families share. When a class is
# made, :func:`complete` adds the inherited entries, so that ``help(TSNE)`` shows all of them, and
# the command line takes the first sentence of an entry as the help of the option.


class Entry(NamedTuple):
    """One documented name: ``name : kind`` and the text below it."""

    kind: str
    text: str


# The meaning of a parameter or attribute, unless a class describes it in more detail.
GLOSSARY = {
    "n_components": Entry("int, default=2", "Dimension of the map."),
    "random_state": Entry(
        "int, numpy Generator, RandomState or None, default=None",
        "Seed of the random numbers. None draws a fresh seed.",
    ),
    "n_jobs": Entry(
        "int or None, default=None",
        "Number of threads, BLAS included. None uses every allowed core. The result does not "
        "depend on it.",
    ),
    "verbose": Entry("bool, default=False", "Show progress on stderr."),
    "callback": Entry(
        "function or None, default=None",
        "Called as ``callback(step, map, loss)`` now and then. If it returns True, the fit stops "
        "and keeps the map as it is.",
    ),
    "metric": Entry(
        'str or function, default="euclidean"',
        'Distance between rows: a name, a function of two rows, or "precomputed". With '
        '"precomputed", X holds the n x n distances of the fitted rows, and new rows are given by '
        "their distances to the fitted rows.",
    ),
    "metric_params": Entry(
        "dict or None, default=None",
        'Keyword parameters of the metric, such as ``{"p": 3}`` for "minkowski", or those of a '
        "function.",
    ),
    "on_disconnected": Entry(
        '{"bridge", "largest", "raise"}, default="bridge"',
        'What to do when the neighbor graph has several connected components. "bridge" adds the '
        'shortest edges that connect them. "largest" maps the largest component and places the '
        'other rows like new rows. "raise" refuses.',
    ),
    "embedding_": Entry("ndarray of shape (n_samples, n_components)", "Map of the fitted rows."),
    "eigenvalues_": Entry("ndarray of shape (n_components,)", "Eigenvalue of each axis."),
    "residual_": Entry("float", "Largest relative residual of the eigenpairs."),
    "n_iter_": Entry("int", "Number of steps done."),
    "n_components_": Entry("int", "Dimension of the map."),
    "n_connected_components_": Entry("int", "Connected components of the neighbor graph."),
}

TITLE = re.compile(r"^(?P<title>[A-Z]\w*)\n-{3,}$", re.MULTILINE)


def _sections(text: str) -> list[tuple[str, str]]:
    """The parts of a docstring with their titles; the introduction has the title ``""``."""
    parts = TITLE.split(text)
    return [("", parts[0].strip()), *((parts[i], parts[i + 1]) for i in range(1, len(parts), 2))]


def entries(doc: str | None, section: str) -> dict[str, Entry]:
    """The entries of a numpydoc section of a docstring, by name; ``a, b : kind`` gives two."""
    found: dict[str, Entry] = {}
    text = dict(_sections(inspect.cleandoc(doc or ""))).get(section, "")
    names: list[str] = []
    for line in text.strip("\n").split("\n"):
        if line and not line.startswith(" "):
            head, _, kind = line.partition(" : ")
            names = [name.strip() for name in head.split(",") if name.strip()]
            found |= {name: Entry(kind.strip(), "") for name in names}
        else:
            for name in names:
                kind, known = found[name]
                found[name] = Entry(kind, f"{known} {line.strip()}".strip())
    return {name: entry for name, entry in found.items() if entry.text}


def short(entry: Entry) -> str:
    """The first sentence of an entry, without its period: the help of an option."""
    return re.split(r"(?<=[^.])\.(?:\s|$)", entry.text, maxsplit=1)[0]


def complete(
    doc: str | None, documented: Mapping[str, tuple[Iterable[str], Mapping[str, Entry]]]
) -> str:
    """A docstring whose sections list every name, the class's own first.

    ``documented`` has, by section, all names in order and what is known of each.
    """
    sections = _sections(inspect.cleandoc(doc or ""))
    own = dict(sections)
    texts = {}
    for title, (names, known) in documented.items():
        text = own.get(title, "").strip("\n")
        there = entries(doc, title)
        added = [
            _entry_text(name, known[name]) for name in names if name not in there and name in known
        ]
        texts[title] = "\n".join([part for part in (text, *added) if part])
    rest = [(title, text) for title, text in sections[1:] if title not in texts]
    titled = [(title, text) for title, text in (*texts.items(), *rest) if text]
    parts = [f"{title}\n{'-' * len(title)}\n{text.strip(chr(10))}" for title, text in titled]
    return "\n\n".join([own[""], *parts]) + "\n"


def _entry_text(name: str, entry: Entry) -> str:
    import textwrap

    body = textwrap.fill(entry.text, 96, initial_indent="    ", subsequent_indent="    ")
    return f"{name} : {entry.kind}\n{body}"


def param(constraint: Constraint, *, default: Any, kw_only: bool = True) -> Any:
    """Declare a parameter inside a class body; see the module's example.

    ``default`` and ``kw_only`` are keywords because type checkers look for them (PEP 681).
    """
    return dataclasses.field(default=default, kw_only=kw_only, metadata={"constraint": constraint})


class Check:
    """What the contents of a fitted attribute must satisfy; see ``_base/models/checks.py``."""

    def flaw(self, value: Any, sizes: dict[str, int]) -> str | None:
        """The first entry that contradicts it, such as ``[30] = 100000``; None if there is none.

        ``sizes`` has the sizes of the model by name.
        """
        raise NotImplementedError

    def describe(self, sizes: dict[str, int]) -> str:
        """What was expected."""
        raise NotImplementedError


class Fitted(NamedTuple):
    """What ``fit`` leaves behind: an array of a named shape, or a scalar of a type."""

    shape: tuple[str, ...] | None
    type: type
    optional: bool = False
    allows_nan: bool = False
    meaning: tuple[Check, ...] = ()
    sparse: bool = False
    may_be_empty: bool = False


def fitted(
    *shape: str,
    type: type = float,  # noqa: A002
    optional: bool = False,
    allows_nan: bool = False,
    meaning: Check | tuple[Check, ...] = (),
    sparse: bool = False,
    may_be_empty: bool = False,
    init: Literal[False] = False,
) -> Any:
    """Declare a fitted attribute: ``fitted("n_components", "n_features")``.

    Sizes are names: the same name means the same size within one model, ``n_features`` is
    ``n_features_in_`` and ``n_components`` is ``n_components_``, or else the parameter. A size may
    also be a number, or a sum such as ``n_kept + 1``. No size means a scalar. ``type`` is
    ``float``, ``int``, ``bool``, ``str`` or, for labels of any of these kinds, ``object``. An
    ``optional`` attribute may be None. Only one with ``allows_nan`` may hold NaN. ``meaning`` is
    what the contents satisfy (``_base/models/checks.py``), as far as compiled code and shapes need
    it; an array of integers needs one. Only a ``sparse`` attribute may be a CSR matrix, and only
    one that ``may_be_empty`` may have a size of 0. ``init`` only shows type checkers that this is
    not a parameter.
    """
    meanings = meaning if isinstance(meaning, tuple) else (meaning,)
    return Fitted(shape or None, type, optional, allows_nan, meanings, sparse, may_be_empty)


@dataclass_transform(kw_only_default=True, field_specifiers=(param, fitted))
class Declared:
    """A class whose parameters are declared, not forwarded."""

    fitted_attributes: ClassVar[dict[str, Fitted]] = {}
    size_rules: ClassVar[dict[str, str]] = {}  # sizes that are sums: {"n": "n_kept + n_excluded"}
    _documented: ClassVar[dict[str, dict[str, Entry]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Fitted)}
        for name in own:
            delattr(cls, name)
            cls.__annotations__.pop(name, None)
        inherited = {
            name: value
            for base in reversed(cls.__mro__[1:])
            for name, value in vars(base).get("fitted_attributes", {}).items()
        }
        cls.fitted_attributes = {**inherited, **own}
        dataclasses.dataclass(eq=False, repr=False)(cls)
        cls._complete_docstring()

    @classmethod
    def _complete_docstring(cls) -> None:
        """Collect what is documented of parameters and attributes, and show all of it."""
        written = vars(cls).get("__doc__")
        declared = {"Parameters": list(cls.parameters()), "Attributes": [*cls.fitted_attributes]}
        shown = {}
        for section, names in declared.items():
            known = {**GLOSSARY}
            for base in reversed(cls.__mro__[1:]):
                known |= vars(base).get("_documented", {}).get(section, {})
            known |= entries(written, section)
            shown[section] = (names, {name: known[name] for name in names if name in known})
        cls._documented = {section: known for section, (_, known) in shown.items()}
        if written is not None:
            cls.__doc__ = complete(written, shown)

    @classmethod
    def documentation(cls, name: str) -> Entry:
        """What is documented of a parameter or fitted attribute."""
        for section in cls._documented.values():
            if name in section:
                return section[name]
        return Entry("", "")

    @classmethod
    def parameters(cls) -> dict[str, dataclasses.Field[Any]]:
        """The declared parameters by name, as dataclass fields with a ``constraint``.

        In the order of the signature: those that may be given by position come first.
        """
        declared: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(cls)  # type: ignore[arg-type]
        return {
            field.name: field for field in sorted(declared, key=lambda field: field.kw_only is True)
        }

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name (``deep`` exists for scikit-learn; no parameter is an estimator)."""
        return {name: getattr(self, name) for name in sorted(self.parameters())}

    def set_params(self, **params: Any) -> Declared:
        """Set parameters by name and return the estimator; checked at the next ``fit``."""
        known = self.parameters()
        for name in params:
            if name not in known:
                kind = f"parameter of {type(self).__name__}"
                raise ParameterError(unknown_name(kind, name, list(known)))
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def check_params(self) -> None:
        """Raise ``ParameterError`` for the first parameter outside its constraint."""
        for name, field in self.parameters().items():
            constraint, value = field.metadata["constraint"], getattr(self, name)
            if not constraint.allows(value):
                large = isinstance(value, numbers.Integral) and abs(int(value)) >= LARGE
                raise ParameterError(
                    f"{type(self).__name__}: {name}={shown(value)} is not allowed; "
                    f"expected {constraint.describe()}{', below 2^63' if large else ''}."
                )

    def inconsistency(self) -> str | None:
        """What of the fitted state does not fit the rest of it, or the parameters; None: nothing.

        A model file is refused for it, so only what would make placing rows fail or read beyond the
        end of an array belongs here. Each attribute satisfies its declaration already.
        """
        return None

    def __repr__(self) -> str:
        changed = (
            f"{name}={getattr(self, name)!r}"
            for name, field in self.parameters().items()
            if not same_value(getattr(self, name), field.default)
        )
        return f"{type(self).__name__}({', '.join(changed)})"


def same_value(value: Any, other: Any) -> bool:
    """Equality that never answers with an array."""
    import numpy as np  # not above: help is shown without it

    if value is other:
        return True
    return type(value) is type(other) and bool(np.array_equal(value, other))
