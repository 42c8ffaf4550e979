"""Each room of the product keeps to its budget of lines."""

from pathlib import Path

from tests.tidy.budgets import (
    SPARE_MAX,
    TABLE,
    count_lines,
    read_budgets,
    rooms_out_of_budget,
    write_table,
)


def test_every_room_keeps_to_its_budget() -> None:
    assert [*rooms_out_of_budget(count_lines(), read_budgets(TABLE.read_text()))] == []


def test_a_room_that_grows_shrinks_or_appears_is_found() -> None:
    budgets = {"core": 100, "web": 1_000, "gone": 50}
    lines = {"core": 101, "web": 1_000 - SPARE_MAX - 1, "new": 1}
    found = [*rooms_out_of_budget(lines, budgets)]
    assert [sentence.partition(":")[0] for sentence in found] == ["core", "gone", "new", "web"]


def test_lines_are_counted_by_the_first_folder(tmp_path: Path) -> None:
    (tmp_path / "core" / "work").mkdir(parents=True)
    (tmp_path / "core" / "work" / "a.py").write_text("a\nb\n")
    (tmp_path / "core" / "b.py").write_text("c\n")
    (tmp_path / "settings.py").write_text("d\n")
    assert count_lines(tmp_path) == {"core": 3, ".": 1}


def test_a_table_that_was_just_written_is_kept_to() -> None:
    lines = {"core": 3, "web": 100}
    assert read_budgets(write_table(lines)) == {"core": 50, "web": 100}
    assert [*rooms_out_of_budget(lines, read_budgets(write_table(lines)))] == []
