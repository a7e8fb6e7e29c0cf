"""Version numbers that are written in several files agree."""

import re
import tomllib
from pathlib import Path

import lowland

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    version = PROJECT["project"]["version"]
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == version
    assert lowland.__version__ == version
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_hooks_use_the_versions_of_the_lint_group():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r'"(\w+==[\d.]+)"', hooks)) == set(PROJECT["dependency-groups"]["lint"])


def test_every_peer_that_a_benchmark_imports_is_installed_by_make_bench():
    modules = {
        "elpigraph": "elpigraph-python",
        "faiss": "faiss-cpu",
        "sklearnex": "scikit-learn-intelex",
        "umap": "umap-learn",
    }
    libraries = {"sklearn", "numpy", "scipy", "matplotlib", "pandas", "polars"}
    sources = sorted((ROOT / "benchmarks").glob("*.py"))
    own = {path.stem for path in sources} | {"lowland", "support"}  # support is part of the tests
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    imported = re.findall(r"^\s*(?:import|from) (\w+)", text, re.MULTILINE)
    imported += re.findall(r"find_spec\(\"(\w+)\"\)", text)
    standard = __import__("sys").stdlib_module_names
    peers = {modules.get(name, name) for name in {*imported} - own - libraries - standard}
    group = {re.split(r"[<>=]", each)[0] for each in PROJECT["dependency-groups"]["bench"]}
    assert peers <= group, f"missing: {sorted(peers - group)}"
