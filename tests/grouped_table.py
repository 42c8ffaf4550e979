"""A Markdown table in which equal columns share one, and equal rows share one."""

from collections.abc import Mapping, Sequence


def grouped_table(corner: str, rows: Sequence[str], columns: Mapping[str, Sequence[str]]) -> str:
    """Return the table of the columns, each with a cell for every row, by their names."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for name, cells in columns.items():
        alike.setdefault(tuple(cells), []).append(name)
    equal: dict[tuple[str, ...], list[str]] = {}
    for number, row in enumerate(rows):
        equal.setdefault(tuple(cells[number] for cells in alike), []).append(row)
    head = [corner, *(", ".join(names) for names in alike.values())]
    body = [["; ".join(names), *cells] for cells, names in equal.items()]
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
