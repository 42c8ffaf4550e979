"""Line budgets of the product's rooms; `python -m tests.tidy.budgets` writes the table.

A room is a folder of functions/tollgate. A larger budget shows in review. When a room shrinks, its
budget is lowered as well, so that saved lines are not spent again unnoticed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

TABLE: Final = Path(__file__).with_name("budgets.txt")
PRODUCT: Final = Path(__file__).parents[2] / "functions" / "tollgate"
# Budgets are multiples of the step, at most `SPARE_MAX` lines above the room's size.
STEP: Final = 50
SPARE_MAX: Final = 150


def count_lines(product: Path = PRODUCT) -> dict[str, int]:
    """Return the lines of each room; modules outside folders count as the room `.`."""
    lines: Counter[str] = Counter()
    for path in product.rglob("*.py"):
        first, *rest = path.relative_to(product).parts
        lines[first if rest else "."] += len(path.read_text(encoding="utf-8").splitlines())
    return dict(lines)


def read_budgets(table: str) -> dict[str, int]:
    """Return the budgets of a table with a room and a number in each line."""
    rows = (line.split() for line in table.splitlines())
    return {room: int(lines) for room, lines in rows}


def rooms_out_of_budget(lines: Mapping[str, int], budgets: Mapping[str, int]) -> Iterator[str]:
    """Yield a message for each room whose budget is missing, exceeded or too high."""
    for room in sorted({*lines, *budgets}):
        if room not in budgets or room not in lines:
            yield f"{room}: the room is new or gone, so the table is out of date"
        elif lines[room] > budgets[room]:
            yield (
                f"{room}: {lines[room]} lines, budget {budgets[room]}. Remove lines, or write the "
                "table anew and say in the commit what the room has gained"
            )
        elif budgets[room] - lines[room] > SPARE_MAX:
            yield f"{room}: {lines[room]} lines, budget {budgets[room]}. Lower the budget"


def write_table(lines: Mapping[str, int]) -> str:
    """Return the table of the rooms' lines, each rounded up to the step."""
    rows = ((room, -(-count // STEP) * STEP) for room, count in sorted(lines.items()))
    return "".join(f"{room} {budget}\n" for room, budget in rows)


if __name__ == "__main__":
    TABLE.write_text(write_table(count_lines()), encoding="utf-8")
