"""A survey: a counter, and questions that share one scale of answers."""

import numpy as np

from lowland.cli import main
from lowland.workflow import make_map

ANSWERS = ["strongly disagree", "disagree", "neutral", "agree", "strongly agree"]
QUESTIONS = [f"q{i}" for i in range(6)]


def test_one_hint_and_one_option_serve_all_questions(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    opinion = rng.normal(size=(60, 1))
    answers = np.clip(np.round(2 + opinion + rng.normal(size=(60, 6)) / 2), 0, 4).astype(int)
    answers[:, 0] = np.maximum(answers[:, 0], 1)  # nobody disagrees strongly with q0
    lines = [",".join(["respondent", *QUESTIONS])]
    lines += [",".join([str(i), *(ANSWERS[a] for a in row)]) for i, row in enumerate(answers)]
    (tmp_path / "survey.csv").write_text("\n".join(lines) + "\n")
    assert main(["map", "survey.csv", "-m", "pca", "-o", "plain"]) == 0
    [hint] = [line for line in capsys.readouterr().out.splitlines() if "look ordered" in line]
    order = hint[hint.index("'") + 1 : hint.rindex("'")]
    assert order == f"{','.join(QUESTIONS)}={','.join(ANSWERS)}"
    assert main(["map", "survey.csv", "-m", "pca", "-o", "ordered", "--order", order]) == 0
    told = capsys.readouterr().out
    assert "look ordered" not in told
    assert f"in order: {' < '.join(ANSWERS)}" in told
    log = make_map("survey.csv", "pca", measure=False).log
    assert any(f"order=dict.fromkeys({QUESTIONS}, {ANSWERS})" in line for line in log)
