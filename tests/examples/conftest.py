"""Run an example inside the test process, on small data."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PNG = b"\x89PNG"


@pytest.fixture
def example(tmp_path, capsys):
    """Call an example; return what it printed, once its pictures are there."""

    def call(name: str, *arguments: object, pictures: tuple[str, ...] = ()) -> str:
        main = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]
        main([*map(str, arguments), "--out", str(tmp_path)])
        written = {path.name for path in tmp_path.glob("*.png")}
        assert written == set(pictures or (f"{name}.png",))
        for picture in written:
            assert (tmp_path / picture).read_bytes().startswith(PNG)
        return capsys.readouterr().out

    return call
