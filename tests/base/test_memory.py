"""What memory is left, how it is spelled, and the refusal."""

import os
import sys

import pytest

from lowland._base import memory
from lowland._base.errors import MemoryLimitError, ParameterError
from lowland._base.memory import available_memory, format_bytes, parse_bytes, require_memory
from support.cases import each

MACHINE = {"proc/meminfo": "MemTotal:  99 kB\nMemFree: 1 kB\nMemAvailable:   1000000 kB\n"}


@pytest.fixture(autouse=True)
def no_limit(monkeypatch):
    monkeypatch.delenv("LOWLAND_MEMORY_LIMIT", raising=False)


@pytest.fixture
def machine(tmp_path):
    def write(files):
        for path, text in {**MACHINE, **files}.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        return tmp_path

    return write


def group(folder, limit, used, inactive):
    return {
        f"sys/fs/cgroup/{folder}/memory.max": f"{limit}\n",
        f"sys/fs/cgroup/{folder}/memory.current": f"{used}\n",
        f"sys/fs/cgroup/{folder}/memory.stat": f"anon 5\ninactive_file {inactive}\n",
    }


def test_without_control_groups_the_machine_counts(machine):
    assert available_memory(machine({})) == 1_024_000_000


def test_a_group_leaves_its_limit_less_what_is_used_and_not_reclaimable(machine):
    files = {"proc/self/cgroup": "0::/job\n", **group("job", 5000, 3000, 1200)}
    assert available_memory(machine(files)) == 5000 - 3000 + 1200


def test_the_tightest_ancestor_counts(machine):
    files = {
        "proc/self/cgroup": "0::/a/b\n",
        **group("a/b", "max", 10, 0),
        **group("a", 700, 300, 0),
        **group(".", 9000, 300, 0),
    }
    assert available_memory(machine(files)) == 400


@pytest.mark.skipif(sys.platform != "linux", reason="limits differ")
def test_limits_of_the_process_count_less_what_it_uses(machine, monkeypatch):
    import resource

    page = resource.getpagesize()
    limits = {resource.RLIMIT_AS: 900 * page, resource.RLIMIT_DATA: resource.RLIM_INFINITY}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limits[kind], -1))
    root = machine({"proc/self/statm": "300 200 100 5 0 150 0\n"})
    assert available_memory(root) == 600 * page
    limits[resource.RLIMIT_DATA] = 250 * page
    assert available_memory(root) == 100 * page
    limits[resource.RLIMIT_DATA] = 10 * page
    assert available_memory(root) == 0
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "7")
    assert available_memory(root) == 7


def test_the_machine_counts_when_the_group_allows_more(machine):
    files = {"proc/self/cgroup": "0::/job\n", **group("job", 10**15, 0, 0)}
    assert available_memory(machine(files)) == 1_024_000_000


def test_a_group_of_version_1_counts(machine):
    folder = "sys/fs/cgroup/memory/job"
    files = {
        "proc/self/cgroup": "4:memory:/job\n",
        f"{folder}/memory.limit_in_bytes": "8000\n",
        f"{folder}/memory.usage_in_bytes": "5000\n",
        f"{folder}/memory.stat": "inactive_file 1\ntotal_inactive_file 100\n",
    }
    assert available_memory(machine(files)) == 3100


def test_a_group_over_its_limit_leaves_nothing(machine):
    files = {"proc/self/cgroup": "0::/job\n", **group("job", 100, 300, 0)}
    assert available_memory(machine(files)) == 0


def test_a_system_that_only_knows_its_size_gives_that(tmp_path, monkeypatch):
    sizes = {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__, raising=False)
    assert available_memory(tmp_path) == 4_096_000


def test_a_system_that_knows_nothing_does_not_refuse(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert available_memory(tmp_path) == sys.maxsize


def test_the_environment_overrides_the_system(machine, monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", " 8 GB ")
    assert available_memory(machine({})) == 8_000_000_000


@each("value", ["lots", "-1", "8 GBs", "1e9", "inf", "8 8"])
def test_a_nonsense_limit_is_refused_by_name_and_value(monkeypatch, value):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", value)
    with pytest.raises(ParameterError, match="LOWLAND_MEMORY_LIMIT") as error:
        available_memory()
    assert repr(value) in str(error.value)


@each(
    ("text", "size"),
    [
        ("0", 0),
        ("4096", 4096),
        ("12 b", 12),
        ("8GB", 8 * 10**9),
        ("500 MB", 5 * 10**8),
        ("2GiB", 2 * 2**30),
        ("1.5k", 1500),
        ("3 ti", 3 * 2**40),
        ("0.1PB", 10**14),
    ],
)
def test_sizes_are_read(text, size):
    assert parse_bytes(text) == size


@each(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1_540_000_000, "1.5 GB"),
        (37_200_000_000, "37 GB"),
        (123_000_000, "120 MB"),
        (999_999, "1.0 MB"),
        (5 * 10**22, "50000 EB"),
    ],
)
def test_sizes_are_written_with_two_digits(size, text):
    assert format_bytes(size) == text


def test_a_need_beyond_the_limit_is_refused_with_figures_and_advice(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 12 * 10**9)
    with pytest.raises(MemoryLimitError) as error:
        require_memory(37 * 10**9, task="PCA of 70 000 columns", alternative="use another solver")
    assert str(error.value) == (
        "PCA of 70 000 columns needs 37 GB, but the process may use 12 GB; "
        "use another solver, or set LOWLAND_MEMORY_LIMIT."
    )


def test_a_narrow_refusal_shows_enough_digits_to_see_why(monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "12GB")
    with pytest.raises(MemoryLimitError, match=r"needs 12\.001 GB, but .* 12\.000 GB.* or raise"):
        require_memory(12_001_000_000, task="it", alternative="do less")


def test_a_need_within_the_limit_passes(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 10**9)
    require_memory(10**9, task="it", alternative="do less")


def test_a_small_need_does_not_ask_the_system(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: pytest.fail("asked"))
    require_memory(1_000_000, task="it", alternative="do less")


def test_a_small_need_respects_a_limit_the_user_set(monkeypatch):
    monkeypatch.setenv("LOWLAND_MEMORY_LIMIT", "1 kB")
    with pytest.raises(MemoryLimitError):
        require_memory(1_000_000, task="it", alternative="do less")
