"""Bars of limits, as a person sees them."""

import pytest

from tollgate.cli.gateway import limits as shown


@pytest.mark.parametrize(
    ("spent", "left", "bar", "words"),
    [
        (0, 5, "░" * 20, "$0 spent, $0 held"),
        (0.001, 4.999, "█" + "░" * 19, "$0.001 spent, $0 held"),
        (2.5, 1.5, "█" * 10 + "▒" * 4 + "░" * 6, "$2.50 spent, $1.00 held"),
        (5, 0, "█" * 20, "$5.00 spent, $0 held"),
        (5.2, -0.2, "█" * 20, "-$0.20 of $5.00 left"),
    ],
)
def test_c92_a_bar_shows_what_is_spent_held_and_left(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    spent: float,
    left: float,
    bar: str,
    words: str,
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    level = {
        "limits": {"day": 5},
        "limits_remaining": {"day": str(left)},
        "limits_usage": {"day": str(spent)},
        "limits_reset_at": {"day": "2026-11-23T00:00:00Z"},
    }
    shown.draw_limits(level, "auto")
    printed = capsys.readouterr().out
    assert f"day   {bar}  " in printed
    assert words in printed
    assert "until 11-23 00:00" in printed
    assert all(len(line) <= 80 for line in printed.splitlines())
    shown.draw_limits(level, "json")
    assert capsys.readouterr().out == ""
