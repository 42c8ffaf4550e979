"""docs/formats.md says what becomes of each thing that a client says, at each codec.

Keeps C13, C80.
"""

from tests import format_table

WRITTEN = format_table.PAGE.read_text(encoding="utf-8")


def test_c13_c80_the_tables_are_what_the_formats_and_codecs_do() -> None:
    made = format_table.page(WRITTEN)
    assert made == WRITTEN, "docs/formats.md is stale: run python -m tests.format_table"
