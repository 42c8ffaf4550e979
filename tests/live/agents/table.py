"""The table of clients: which version of which client was seen to do what, against the last table.

    python -m tests.live.agents.table report.xml [--write]

prints in Markdown what differs from table.json, and nothing if only versions moved. `report.xml` is
what `pytest --junit-xml` writes of this folder.
"""

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

TABLE: Final = Path(__file__).with_name("table.json")
_SEEN_MAX: Final = 200


@dataclass(frozen=True, order=True)
class Cell:
    """One scenario of one client in one format, and what was seen."""

    client: str
    format: str
    scenario: str
    version: str
    seen: str

    @property
    def place(self) -> tuple[str, str, str]:
        """Where the cell is in the table."""
        return self.client, self.format, self.scenario


def read_report(text: str) -> list[Cell]:
    """Return the cells of a report; a skipped test has no cell, since nothing was seen."""
    cells = []
    for case in ET.fromstring(text).iter("testcase"):
        told = {each.get("name"): each.get("value", "") for each in case.iter("property")}
        if "client" not in told or case.find("skipped") is not None:
            continue
        failure = case.find("failure")
        if failure is None:
            failure = case.find("error")
        seen = "passed" if failure is None else failure.get("message", "failed")
        cells.append(
            Cell(
                client=told["client"],
                format=told["format"],
                scenario=_scenario(case.get("name", ""), told["client"], told["format"]),
                version=told["version"],
                seen=" ".join(seen.split())[:_SEEN_MAX],
            )
        )
    return sorted(cells)


def _scenario(test: str, client: str, format_: str) -> str:
    """Return the words of a test's name without the numbers of statements, client and format."""
    named, _, given = test.removesuffix("]").partition("[")
    words = re.sub(r"^test_(c\d+_)*", "", named).replace("_", " ")
    given = given.replace(f"{client}-{format_}", "").strip("-")
    return f"{words}: {given}" if given else words


def differences(last: list[Cell], now: list[Cell]) -> Iterator[str]:
    """Yield a line for each cell that is new, gone or seen otherwise; a version alone is none."""
    before = {cell.place: cell for cell in last}
    after = {cell.place: cell for cell in now}
    for place in sorted(before.keys() | after.keys()):
        was, it_is = before.get(place), after.get(place)
        if was and it_is and was.seen == it_is.seen:
            continue
        yield f"| {' | '.join(map(_column, (*place, _told(was), _told(it_is))))} |"


def _told(cell: Cell | None) -> str:
    return f"{cell.version}: {cell.seen}" if cell else "not tried"


def _column(text: str) -> str:
    """Return text that ends neither its column nor a code span: clients' output is not Markdown."""
    return "`" + text.replace("`", "'").replace("|", "/") + "`"


def moved_versions(last: list[Cell], now: list[Cell]) -> Iterator[str]:
    """Yield a line for each client whose version is another one."""
    before, after = _versions(last), _versions(now)
    for client in sorted(before.keys() & after.keys()):
        if before[client] != after[client]:
            yield f"- {client}: {before[client]} → {after[client]}"


def _versions(cells: list[Cell]) -> Mapping[str, str]:
    return {cell.client: cell.version for cell in cells}


def load(text: str) -> list[Cell]:
    """Return the cells of table.json."""
    return [Cell(**cell) for cell in json.loads(text)["cells"]]


def dump(cells: list[Cell], day: str) -> str:
    """Return table.json, with a cell a line so that a change of one is a change of one line."""
    lines = ",\n".join("  " + json.dumps(asdict(cell), ensure_ascii=False) for cell in cells)
    return f'{{"seen": "{day}", "cells": [\n{lines}\n]}}\n'


def main() -> None:
    """Compare, print, and write the table if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    last = load(TABLE.read_text()) if TABLE.exists() else []
    now = read_report(options.report.read_text())
    if changed := list(differences(last, now)):
        print(
            "| client | format | scenario | last table | now |", "|---|---|---|---|---|", sep="\n"
        )
        print(*changed, "", *moved_versions(last, now), sep="\n")
    if options.write:
        TABLE.write_text(dump(now, datetime.now(UTC).date().isoformat()))


if __name__ == "__main__":
    main()
