"""Places in the Python sources where one small error can be made, found in the syntax tree.

Each error replaces one piece of the text of a file, so that nothing else changes. Left out is what
no result depends on: messages, declared text, estimates of cost and memory, progress, and how much
is computed at a time. Left out are also settings, for which another number is another choice and no
error: named numbers of a module, allowances for rounding, and how many threads are the default. The
rules for that are the patterns below and ``is_setting``.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from typing import Any

# Files that draw, word or show something, and those that only estimate what a call costs.
FILES = re.compile(
    r"^(plot|report)/|^cli/(console|failures)\.py$|^workflow/(pictures/|_display\.py$)"
    r"|^trust/sentences\.py$"
    r"|^_base/(html|traits|errors|monitor)\.py$"
)
# Functions that estimate a cost, or that say something to people.
FUNCTIONS = re.compile(
    r"(^|_)(estimates?|cost|seconds|n_?bytes|describe|repr|html|messages?|words|sentences?)(_|$)"
)
# Names of declared text, and of how much is computed at a time.
NAMES = re.compile(
    r"^(__all__|card|reference|narrower|aliases)$|BYTES|BLOCK|CHUNK|TILE|COST|SECONDS"
)
# Calls that warn, ask for memory or threads, declare text, estimate or show progress, and
# exceptions, which are messages.
CALLS = re.compile(
    r"^(warn\w*|require_memory|needs_memory|limit_blas|Card|Estimate|\w*_cost|phase|advance"
    r"|row_blocks|rows_within|\w+Error|\w+Warning)$"
)
# Keywords that check a call of a library or make it faster.
KEYWORDS = re.compile(r"^(strict|check_finite|overwrite_\w+|copy|buffering|stacklevel)$")

# Lists of sentences for people.
NOTES = ("notes", "told")
# The largest relative error that is still one of rounding.
ROUNDING = 1e-9

COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.Pow: ("**", "*"), ast.FloorDiv: ("//", "/"), ast.Mod: ("%", "*"),
}  # fmt: skip
NO_SIGNS = ("?", "?")  # of operators that have no other one, such as @
# Their arguments change nothing if exchanged, or cannot be exchanged at all.
NOT_EXCHANGED = {
    "min", "max", "minimum", "maximum", "hypot", "gcd", "allclose", "array_equal",
    "isinstance", "issubclass", "getattr", "hasattr", "setattr",
}  # fmt: skip
SIMPLE = ast.Name | ast.Attribute | ast.Subscript | ast.Constant
Error = tuple[str, int, int, str]  # operator, first byte, last byte, new text
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclasses.dataclass(frozen=True)
class Site:
    """One error: bytes ``start`` to ``end`` of the file become ``new``."""

    file: str
    line: int
    lines: tuple[int, int]  # first and last line of the statement, without its body
    at_import: bool  # outside of functions: it runs when the module is imported
    operator: str
    start: int
    end: int
    new: str

    @property
    def room(self) -> str:
        return room_of(self.file)

    @property
    def is_native(self) -> bool:
        return not self.file.endswith(".py")

    def planted_in(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]

    def change(self, source: bytes) -> str:
        """What stood there and what stands there now, on one line."""
        old = source[self.start : self.end].decode()
        return " -> ".join(" ".join(text.split())[:60] for text in (old, self.new))


def room_of(file: str) -> str:
    """The first folder below the package; of a method, its family."""
    room = file.removeprefix("methods/")
    return room.partition("/")[0].lstrip("_") if "/" in room else "lowland"


def python_sites(file: str, source: bytes) -> list[Site]:
    """All errors that can be made in a file, in the order of its text."""
    if FILES.search(file):
        return []
    text, found = Text(source), []
    for node, lines, at_import in walk(ast.parse(source), (1, 1), True):
        for operator, start, end, new in [*operator_errors(node, text), *other_errors(node, text)]:
            line = source.count(b"\n", 0, start) + 1
            found.append(Site(file, line, lines, at_import, operator, start, end, new))
    return sorted(found, key=lambda site: (site.start, site.end, site.operator))


def walk(node: ast.AST, lines: tuple[int, int], at_import: bool) -> Iterator[Any]:
    """Nodes with the lines of their statement, and whether they run at import."""
    if is_left_out(node):
        return
    if isinstance(node, ast.stmt):
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if body else node.end_lineno
        lines = node.lineno, max(node.lineno, last or 0)
    yield node, lines, at_import
    if isinstance(node, ast.Raise):  # the statement can be dropped, but its text is a message
        return
    if isinstance(node, ast.arguments):
        yield from walk_defaults(node, lines, at_import)
        return
    for field, value in ast.iter_fields(node):
        inner = at_import and not (isinstance(node, FUNCTION) and field == "body")
        if field not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from walk(child, lines, inner)


def walk_defaults(node: ast.arguments, lines: tuple[int, int], at_import: bool) -> Iterator[Any]:
    """Default values of parameters, except of the number of threads: it changes no result."""
    positional = [*node.posonlyargs, *node.args]
    named = [*positional[len(positional) - len(node.defaults) :], *node.kwonlyargs]
    for argument, value in zip(named, [*node.defaults, *node.kw_defaults], strict=True):
        if value is not None and argument.arg != "threads":
            yield from walk(value, lines, at_import)


def is_left_out(node: ast.AST) -> bool:
    """Whether no error is made in this part of the tree."""
    if is_setting(node):
        return True
    if isinstance(node, FUNCTION):
        return bool(FUNCTIONS.search(node.name))
    if isinstance(node, ast.Call):
        owner = getattr(node.func, "value", None)
        is_note = isinstance(owner, ast.Name) and owner.id in NOTES
        return is_note or bool(CALLS.match(called(node)))
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(isinstance(t, ast.Name) and NAMES.search(t.id) for t in targets)
    if isinstance(node, ast.Expr):  # a docstring, or a call that is left out
        return isinstance(node.value, ast.Constant) or is_left_out(node.value)
    if isinstance(node, ast.Raise):  # in the body of an abstract method
        return isinstance(node.exc, ast.Name) and node.exc.id == "NotImplementedError"
    if isinstance(node, ast.keyword):
        return bool(KEYWORDS.match(node.arg or ""))
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr | ast.Assert)


def is_setting(node: ast.AST) -> bool:
    """Whether a number is a choice: ``MOST_ROWS = 3000``, or an allowance such as 1e-12."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and 0 < node.value <= ROUNDING
    if not isinstance(node, ast.Assign) or not all(
        isinstance(target, ast.Name) and target.id.isupper() for target in node.targets
    ):
        return False
    parts = [part for part in ast.walk(node.value) if isinstance(part, ast.expr)]
    return all(isinstance(p, ast.Constant | ast.Tuple | ast.BinOp | ast.UnaryOp) for p in parts)


def operator_errors(node: ast.AST, text: Text) -> Iterator[Error]:
    """Another operator in the place of one that compares, joins conditions or computes."""
    match node:
        case ast.Compare():
            operands = [node.left, *node.comparators]
            for kind, left, right in zip(node.ops, operands, operands[1:], strict=False):
                yield from text.token("comparison", left, right, *COMPARISONS[type(kind)])
        case ast.BoolOp():
            words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from text.token("boolean", left, right, *words)
        case ast.BinOp(left, op, right) if not (is_text(left) or is_text(right)):
            yield from text.token("arithmetic", left, right, *ARITHMETIC.get(type(op), NO_SIGNS))
        case ast.AugAssign(target, op, value) if not is_text(value):
            old, new = (f"{sign}=" for sign in ARITHMETIC.get(type(op), NO_SIGNS))
            yield from text.token("arithmetic", target, value, old, new)
        case ast.UnaryOp(ast.USub(), operand) if not isinstance(operand, ast.Constant):
            yield "sign", text.start(node), text.start(node) + 1, ""


def other_errors(node: ast.AST, text: Text) -> Iterator[Error]:
    """A negated condition, another constant, exchanged arguments, or a dropped statement."""
    match node:
        case ast.If() | ast.While() | ast.IfExp():
            yield text.replaced("condition", node.test, f"not ({text.of(node.test)})")
        case ast.comprehension():
            for test in node.ifs:
                yield text.replaced("condition", test, f"not ({text.of(test)})")
        case ast.Constant() if isinstance(node.value, bool | int | float):
            yield text.replaced("constant", node, another(node.value))
        case ast.Call(args=[first, second, *_]) if called(node) not in NOT_EXCHANGED:
            a, b, gap = text.of(first), text.of(second), text.between(first, second)
            if isinstance(first, SIMPLE) and isinstance(second, SIMPLE) and a != b:
                yield "arguments", text.start(first), text.end(second), b + gap + a
    if is_droppable(node):
        yield text.replaced("statement", node, "pass")


def is_droppable(node: ast.AST) -> bool:
    """Statements that act by themselves: without them the names below are still defined."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    return isinstance(node, ast.AugAssign | ast.Raise)


def called(node: ast.Call) -> str:
    """The last name of what is called: ``phase`` of ``run.monitor.phase()``."""
    function = node.func
    return getattr(function, "attr", None) or getattr(function, "id", "")


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def another(value: Any) -> str:
    """A constant in the place of another one; the next of a large integer is nearly the same."""
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, int) and value < 10:
        return str({0: 1, 1: 0}.get(value, value + 1))
    return repr(2 * value if value else 1.0)


class Text:
    """The text of a file by the positions of nodes, which count bytes of a line."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def start(self, node: Any) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node: Any) -> int:
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def of(self, node: ast.AST) -> str:
        return self.source[self.start(node) : self.end(node)].decode()

    def between(self, left: ast.AST, right: ast.AST) -> str:
        return self.source[self.end(left) : self.start(right)].decode()

    def replaced(self, operator: str, node: ast.AST, new: str) -> Error:
        return operator, self.start(node), self.end(node), new

    def token(
        self, operator: str, left: ast.AST, right: ast.AST, old: str, new: str
    ) -> Iterator[Error]:
        """An operator between two operands; not beside a comment, which could contain it, too."""
        gap = self.between(left, right)
        if "#" not in gap and old in gap:
            place = self.end(left) + gap.index(old)
            yield operator, place, place + len(old), new
