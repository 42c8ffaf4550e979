"""Command line of the growth measurement, `make scale`, described in bench/README.md."""

import argparse
import asyncio
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from msgspec import json
from tests.capacity.report import (
    ANSWERS_S,
    SHAPES,
    CapacityRow,
    format_capacity,
    highest_rate,
)

from bench.children import TOP
from bench.scale.catalogs import measure_catalogs
from bench.scale.deployments import Template, make_template
from bench.scale.flight import measure_requests, measure_streams
from bench.scale.measure import Point
from bench.scale.report import draw_growth, format_points
from bench.scale.shards import measure_shards
from bench.scale.store_parts import measure_keys, measure_records, measure_workspaces

_RESULT: Final = TOP / "dist" / "scale.json"
_PICTURE: Final = TOP / "dist" / "growth.svg"
# The simulated rates of docs/performance.md take minutes, so they run only if PART names them.
_LIMITS: Final = "limits"
# Sixteen shards take 40,000 simulated requests, which `python -m tests.capacity.report` runs.
_LIMITED_SHARDS_MAX: Final = 4
# Everything that the processes reach is on this machine.
_ENVIRONMENT: Final = {
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "BENCH_API_KEY": "bench",
}
# For each part, the unit of its sizes, and the function that measures the part.
_PARTS: Final[Mapping[str, tuple[str, Callable[[Template], AsyncIterator[Sequence[Point]]]]]] = {
    "keys": ("keys in a workspace", measure_keys),
    "workspaces": ("workspaces", measure_workspaces),
    "shards": ("shards of a wallet", measure_shards),
    "records": ("records of a day", measure_records),
    "catalog": ("models of the catalog", measure_catalogs),
    "flight": ("requests in flight", measure_requests),
    "streams": ("streams open at a time", measure_streams),
}


def main() -> None:
    """Measure the parts, print their tables, and store all points and the picture."""
    parser = argparse.ArgumentParser(prog="make scale", description=__doc__)
    parser.add_argument("--part", nargs="*", choices=(*_PARTS, _LIMITS), default=list(_PARTS))
    parser.add_argument("--picture", type=Path, default=_PICTURE)
    options = parser.parse_args()
    os.environ.update(_ENVIRONMENT)
    began_s = time.monotonic()
    found = _read_result() | asyncio.run(
        _measure([part for part in options.part if part in _PARTS])
    )
    if _LIMITS in options.part:
        print(format_capacity(_measure_limits()), end="\n\n")
    _RESULT.parent.mkdir(parents=True, exist_ok=True)
    _RESULT.write_bytes(json.format(json.encode(found)))
    options.picture.write_text(
        draw_growth({_PARTS[part][0]: points for part, points in found.items()})
    )
    print(f"Took {time.monotonic() - began_s:.0f} s; load {os.getloadavg()[0]:.1f}.")


def _measure_limits() -> list[CapacityRow]:
    """Return the rates of each shape with few shards, and print each rate once it is found."""
    logging.disable(logging.CRITICAL)
    found: list[CapacityRow] = []
    for name, shape in SHAPES.items():
        # A single key or team is one item, however many shards the wallet has.
        of_wallet = shape.keys > 1 and not shape.team
        if of_wallet and shape.shards > _LIMITED_SHARDS_MAX:
            continue
        rates: list[float] = []
        for answer_s in ANSWERS_S:
            began_s = time.monotonic()
            rates.append(highest_rate(replace(shape, answer_s=answer_s)))
            taken = f"{time.monotonic() - began_s:.0f} s"
            print(f"  {name}, {answer_s:g} s: {rates[-1]:,.0f} ({taken})", file=sys.stderr)
        found.append(CapacityRow(name, rates))
    return found


def _read_result() -> dict[str, list[Point]]:
    """Return the points of earlier runs, which the picture also shows."""
    if not _RESULT.exists():
        return {}
    found = json.decode(_RESULT.read_bytes(), type=dict[str, list[Point]])
    return {part: found[part] for part in _PARTS if part in found}


async def _measure(parts: Sequence[str]) -> dict[str, list[Point]]:
    template = await make_template()
    found: dict[str, list[Point]] = {}
    for part in parts:
        unit, measure = _PARTS[part]
        found[part] = []
        async for points in measure(template):
            found[part] += points
            print(f"  {unit}: {points[-1].size:,}", file=sys.stderr)
        print(format_points(found[part], unit), end="\n\n")
    return found


if __name__ == "__main__":
    main()
