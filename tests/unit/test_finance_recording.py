"""The recording of a terminal in docs/finance.txt."""

from tests.local_server import ROOT

QUESTIONS = (
    "generations show",
    "spend --month last --by team",
    "credits ledger",
    "spend",
    "reconcile",
    "statement --month last --csv",
    "statement --month last --pdf",
)


def test_the_recording_answers_finance_within_its_columns() -> None:
    lines = (ROOT / "docs" / "finance.txt").read_text().splitlines()
    # A CSV table may be wider than the terminal, because it is for programs.
    assert [line for line in lines if len(line) > 100 and line.count(",") < 10] == []
    commands = [line.removeprefix("$ tollgate ") for line in lines if line.startswith("$ ")]
    for question in QUESTIONS:
        assert any(f"{command} ".startswith(f"{question} ") for command in commands), question
    shown = "\n".join(lines)
    assert "$0.30900  acme/thinker" in shown
    assert "why so much" in shown
    assert "Forecast of" in shown
    assert "Traceback" not in shown
    assert "Error" not in shown
