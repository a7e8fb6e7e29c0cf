"""Random numbers of a method come from its ``random_state``: no generator has a seed of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import lowland
from lowland._base import registry
from support.cases import each

PACKAGE = Path(lowland.__file__).parent
GENERATORS = {"default_rng", "RandomState", "SeedSequence", "generator"}
GENERATORS |= {"PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"}
SEEDS = {"random_state", "seed", "rng"}  # arguments that bring random numbers

# Where methods and what they are made of live. Pictures, reports and measures are not estimators:
# they draw the same sample every time, so that two of them can be compared.
ROOMS = {"methods", "_base", "_engines", *registry.SELECTION, *registry.PREPARATION}
FILES = sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py"))

UNSEEN = "the start of an iteration to full precision, in which it does not show"
EXCEPTIONS = {
    "_base/context.py": "None means a fresh seed",
    "_engines/kernels/kernel_operators.py": "a scale must be that of the data, whatever the seed",
    "_engines/linalg/eigen.py": "of callers without one; " + UNSEEN,
    "_engines/neighbors/cell_index.py": "an index must not depend on who searches in it",
    "_engines/neighbors/duplicates.py": "weights of a digest, by which equal rows are found",
    "_engines/neighbors/search.py": "of callers without one, whose neighbors are exact",
    "methods/latent/ppca.py": UNSEEN,
}


def constants(tree: ast.Module) -> set[str]:
    """Names that the module sets to a constant."""
    return {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and is_constant(node.value, set())
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def is_constant(node: ast.expr, known: set[str]) -> bool:
    names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    calls = any(isinstance(inner, ast.Call | ast.Attribute) for inner in ast.walk(node))
    return names <= known and not calls


def constant_seeds(tree: ast.Module) -> Iterator[tuple[ast.Call, list[str]]]:
    """Generators made without a seed or with the same one every time, and the arguments there."""
    known = constants(tree)
    for node, arguments in inside_functions(tree, []):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        seeds = [*node.args, *(keyword.value for keyword in node.keywords)]
        if name in GENERATORS and all(is_constant(value, known) for value in seeds):
            yield node, arguments


def inside_functions(node: ast.AST, arguments: list[str]) -> Iterator[tuple[ast.AST, list[str]]]:
    """Every node, and the arguments of the functions it is in."""
    if isinstance(node, ast.FunctionDef):
        given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        arguments = [*arguments, *(argument.arg for argument in given)]
    yield node, arguments
    for child in ast.iter_child_nodes(node):
        yield from inside_functions(child, arguments)


def parsed(path: Path) -> ast.Module:
    text = path.read_text(encoding="utf-8")
    return ast.parse(text if any(name in text for name in GENERATORS) else "")


def in_package(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@each("path", FILES, ids=in_package)
def test_no_generator_of_a_method_has_a_seed_of_its_own(path):
    found = [f"line {node.lineno}: {ast.unparse(node)}" for node, _ in constant_seeds(parsed(path))]
    if in_package(path) in EXCEPTIONS:
        assert found, "it is no longer an exception"
        return
    assert not found, f"{in_package(path)}: take random numbers from run.rng, not from {found}"


def test_every_exception_is_a_file():
    assert set(EXCEPTIONS) <= {in_package(path) for path in FILES}


def test_no_function_that_is_given_a_seed_makes_another_one():
    """This holds in measures, datasets and pictures, too."""
    for path in PACKAGE.rglob("*.py"):
        if in_package(path) not in EXCEPTIONS:
            for node, arguments in constant_seeds(parsed(path)):
                where = f"{in_package(path)}, line {node.lineno}"
                assert not SEEDS & set(arguments), f"{where}: {ast.unparse(node)}"


@each(
    ("source", "count"),
    [
        ("rng = np.random.default_rng(0)", 1),
        ("rng = default_rng()", 1),
        ("SEED = 7\ndef f(): return np.random.default_rng([SEED, 1])", 1),
        ("rng = np.random.Generator(np.random.PCG64(seed=5))", 1),
        ("def f(seed): return np.random.default_rng([seed, 3])", 0),
        ("rng = np.random.default_rng(run.rng.integers(2**63))", 0),
        ("rng = generator(self.random_state)", 0),
    ],
)
def test_the_search_finds_what_there_is(source, count):
    assert len(list(constant_seeds(ast.parse(source)))) == count
