"""The house rules that a machine can check: layers, sizes, no side effects, public names."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from pathlib import Path

import pytest

import lowland
from lowland._base import registry
from support.cases import each

ROOT = Path(__file__).resolve().parents[1]
# The installed package, so that the rules hold for what users get.
PACKAGE = Path(lowland.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# Imports go downward only: a room may import rooms on lower floors, and its own.
FLOORS = [
    {"_native"},
    {"_base"},
    {"errors"},
    {"_engines"},
    {"methods", *registry.SELECTION, *registry.PREPARATION, "datasets", "neighbors"},
    {"metrics", "plot", "tables"},
    {"trust"},
    {"report", "chunks"},
    {"workflow"},
    {"cli"},
    {"__main__"},
]


ROOMS = "|".join(name for rooms in FLOORS for name in rooms)
MODULE_PATH = re.compile(rf"lowland\.({ROOMS})(\.\w+)*")


@functools.cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file; every rule walks the same one."""
    return ast.parse(path.read_text())


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def floor(name: str) -> int:
    return next(number for number, rooms in enumerate(FLOORS) if name in rooms)


@functools.cache
def imported(path: Path) -> set[str]:
    """Full names of what a file imports from the package, by statement or by a string."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write absolute imports"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value] if MODULE_PATH.fullmatch(node.value) else []
        else:
            continue
        found |= {name for name in names if name.startswith("lowland.")}
    return found


def imported_rooms(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imported(path)}


@each("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downward_only(path):
    if room(path) == "__init__":
        return
    allowed = {name for rooms in FLOORS[: floor(room(path))] for name in rooms}
    allowed |= {room(path), "__version__"}
    assert imported_rooms(path) <= allowed


@each("path", (PACKAGE / "methods").rglob("*.py"), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_family_never_imports_another_family(path):
    """What two families share is an engine, or one of the bases below all families."""
    family = path.relative_to(PACKAGE / "methods").parts[0].removesuffix(".py")
    used = {name.split(".")[2] for name in imported(path) if name.startswith("lowland.methods.")}
    assert used <= {family, "_bases"}
    assert family in ("__init__", "_bases", *registry.FAMILIES, *registry.ALIGNMENT)


# The rooms of `_engines`, lowest first: a room imports lower rooms and its own files.
ENGINE_ROOMS = [
    "linalg",
    "distances",
    "neighbors",
    "graphs",
    "kernels",
    "embedding",
    "stress",
    "local_stress",
    "patches",
    "grids",
    "network",
    "gaussian_processes",
]
ENGINES = [path for path in FILES if room(path) == "_engines"]


def test_every_room_of_engines_has_a_place_in_the_order():
    rooms = {path.parent.name for path in (PACKAGE / "_engines").glob("*/__init__.py")}
    assert rooms == set(ENGINE_ROOMS)


@each("path", ENGINES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_engines_import_lower_rooms_only(path):
    parts = path.relative_to(PACKAGE).parts
    if len(parts) == 2:  # the package itself
        assert not imported(path)
        return
    allowed = set(ENGINE_ROOMS[: ENGINE_ROOMS.index(parts[1]) + 1])
    used = {name.split(".")[2] for name in imported(path) if name.startswith("lowland._engines.")}
    assert used <= allowed


def code_lines(path: Path) -> int:
    """Lines that hold code: no blank lines, no comments, no docstrings."""
    tree = parsed(path)
    held = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    docs = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    text = path.read_text().splitlines()
    return sum(bool(text[line - 1].split("#")[0].strip()) for line in held - docs)


@each("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_holds_two_ideas(path):
    assert code_lines(path) <= 400


def test_a_folder_can_be_seen_at_a_glance():
    """At most 18 files; without the package's own ``__init__.py`` and its stub."""
    sources = [path for kind in ("py", "cpp", "h") for path in (ROOT / "src").rglob(f"*.{kind}")]
    sizes = Counter(path.parent for path in sources if path.name != "__init__.py")
    assert {folder: size for folder, size in sizes.items() if size > 18} == {}


# Files of their own all the same: one for each format and command, and what has a name of its own.
OWN_FILES = ("lowland.tables.formats.", "lowland.cli.")
OWN_NAMES = {
    "lowland._engines.neighbors.cell_index",  # the index that a fitted model keeps
    "lowland.preparation.orientation",  # a step of a model, which its file names
}


def test_a_module_with_one_user_is_large():
    """What one module uses stands in it; what a package exports has users outside."""
    users = Counter()
    for path in FILES:
        # a name of a module, or of what is in it
        used = {part for name in imported(path) for part in (name, name.rpartition(".")[0])}
        users.update({name: 1 + path.name.startswith("__init__") for name in used})
    small = set()
    for path in FILES:
        name = ".".join(("lowland", *path.relative_to(PACKAGE).with_suffix("").parts))
        own = path.name.startswith("__") or name.startswith(OWN_FILES) or name in OWN_NAMES
        if users[name] == 1 and not own and code_lines(path) <= 150:
            small.add(name)
    assert small == set()


def test_the_first_pages_that_people_read_are_short():
    readme, architecture = (
        (ROOT / name).read_text(encoding="utf-8").splitlines()
        for name in ("README.md", "ARCHITECTURE.md")
    )
    assert len(readme) <= 160
    assert len(architecture) <= 150
    assert max(map(len, architecture)) <= 100


@each("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_doors_list_their_exports(path):
    """A list of names is for users: of a package, or of a module that repeats names."""
    listed = [
        ast.literal_eval(node.value)
        for node in parsed(path).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    assert not listed or path.name == "__init__.py" or path == PACKAGE / "errors.py"


@each("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_numpys_global_random_state_is_never_used(path):
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in (
            "np.random",
            "numpy.random",
        ):
            assert node.attr in ("Generator", "RandomState", "default_rng", "SeedSequence"), path


def test_the_stub_of_the_package_lists_every_method_and_no_other():
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    listed = {
        alias.asname
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {*listed, "__version__"} == set(dir(lowland)), "run 'make docs'"


def test_every_public_name_can_be_reached():
    for name in dir(lowland):
        assert getattr(lowland, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = lowland.Nonsense


def test_a_method_is_found_by_any_spelling_of_its_name():
    for cls in registry.all_methods():
        for spelling in (cls.__name__, cls.__name__.lower(), registry.snake_case(cls.__name__)):
            assert registry.get(spelling) is cls
        assert getattr(lowland, cls.__name__) is cls


@each(
    ("name", "snake"),
    [
        ("PCA", "pca"),
        ("KernelPCA", "kernel_pca"),
        ("LaplacianEigenmaps", "laplacian_eigenmaps"),
        ("TSNE", "tsne"),
        ("ModifiedLLE", "modified_lle"),
        ("PaCMAP", "pacmap"),
        ("LocalMAP", "local_map"),
    ],
)
def test_file_names_are_class_names_in_snake_case(name, snake):
    assert registry.snake_case(name) == snake


# Eigenproblems and singular values are solved in `_engines/linalg` only, through its `eigen`.
SOLVERS = {"eig", "eigh", "eigvals", "eigvalsh", "eigh_tridiagonal", "eigsh", "eigs", "lobpcg"}
SOLVERS |= {"eig_banded", "eigvals_banded", "svd", "svds", "svdvals"}
BEHIND_EIGEN = {"smallest_solvers"}


def linalg_calls(path: Path) -> set[str]:
    """Names of numpy's and scipy's eigensolvers that a file mentions in its code."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Attribute) and node.attr in SOLVERS:
            found.add(ast.unparse(node))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            ("numpy", "scipy", "sklearn")
        ):
            found |= {alias.name for alias in node.names if alias.name in SOLVERS}
    return found


def test_eigenproblems_are_solved_behind_one_door():
    room_of_solvers = PACKAGE / "_engines" / "linalg"
    assert linalg_calls(room_of_solvers / "eigen.py")  # the search finds what there is
    for path in FILES:
        if room_of_solvers in path.parents:
            continue
        assert not linalg_calls(path), f"{path}: call lowland._engines.linalg.eigen instead"
        modules = {name.split(".")[3] for name in imported(path) if "._engines.linalg." in name}
        assert not modules & BEHIND_EIGEN, f"{path}: import lowland._engines.linalg.eigen"
