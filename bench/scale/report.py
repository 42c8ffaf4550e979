"""The costs at each size as Markdown tables, and their growth as SVG."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from bench.scale.measure import Point

_WIDTH: Final = 460
_HEIGHT: Final = 300
_LEFT: Final = 62
_LEGEND: Final = 170
_TOP: Final = 30
_BOTTOM: Final = 34
_COLOURS: Final = (
    "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2",
    "#7f7f7f", "#bcbd22", "#1a1a1a",
)  # fmt: skip


# Smaller amounts of memory are not shown.
_LEAST_MB: Final = 0.1


def format_points(points: Sequence[Point], unit: str) -> str:
    """Return a table with a row for each operation and a column for each size."""
    sizes = sorted({point.size for point in points})
    lines = [
        f"| {unit} | " + " | ".join(f"{size:,}" for size in sizes) + " |",
        "|---|" + "---|" * len(sizes),
    ]
    for name in dict.fromkeys(point.operation for point in points):
        found = {point.size: point for point in points if point.operation == name}
        cells = (_cell(found[size]) if size in found else "" for size in sizes)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(point: Point) -> str:
    cost = point.cost
    memory = ""
    if point.memory_mb is not None and point.memory_mb >= _LEAST_MB:
        memory = f", {_short(point.memory_mb)} MB"
    if not cost.calls:
        return f"{_short(cost.cpu_ms)} ms{memory}"
    read = f" {cost.read_units:,.0f} r" if cost.read_units else ""
    written = f" {cost.write_units:,g} w" if cost.write_units else ""
    return f"{cost.calls:,} calls,{read}{written}, {_short(cost.cpu_ms)} ms{memory}"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}" if number >= 1 else f"{number:.2g}"


def _name(size: int) -> str:
    return f"{size // 1_000_000}M" if size >= 1_000_000 else f"{size:,}"


def draw_growth(parts: Mapping[str, Sequence[Point]]) -> str:
    """Return a picture with a plot for each part: CPU by size, both logarithmic."""
    plots = [
        f'<g transform="translate({place % 2 * _WIDTH},{place // 2 * _HEIGHT})">'
        f"{_plot(name, points)}</g>"
        for place, (name, points) in enumerate(parts.items())
    ]
    height = (len(plots) + 1) // 2 * _HEIGHT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * _WIDTH} {height}" '
        'font-family="sans-serif" font-size="10"><rect width="100%" height="100%" fill="#fff"/>'
        + "\n".join(plots)
        + "</svg>\n"
    )


def _plot(title: str, points: Sequence[Point]) -> str:
    low = math.floor(math.log10(max(1e-2, min(point.cost.cpu_ms for point in points))))
    high = max(low + 1, math.ceil(math.log10(max(point.cost.cpu_ms for point in points))))
    sizes = sorted({point.size for point in points})
    first, last = math.log10(sizes[0]), math.log10(sizes[-1])

    def x(size: int) -> float:
        return _LEFT + (math.log10(size) - first) / (last - first) * (_WIDTH - _LEFT - _LEGEND - 12)

    def y(milliseconds: float) -> float:
        part = (math.log10(max(milliseconds, 10**low)) - low) / (high - low)
        return _HEIGHT - _BOTTOM - part * (_HEIGHT - _TOP - _BOTTOM)

    parts = [f'<text x="{_LEFT}" y="18" font-size="12" font-weight="bold">{title}</text>']
    for power in range(low, high + 1):
        place = y(10.0**power)
        parts.append(
            f'<line x1="{_LEFT}" x2="{x(sizes[-1]):.0f}" y1="{place:.0f}" y2="{place:.0f}" '
            f'stroke="#ddd"/><text x="{_LEFT - 5}" y="{place + 3:.0f}" text-anchor="end">'
            f"{10.0**power:,g} ms</text>"
        )
    parts.extend(
        f'<text x="{x(size):.0f}" y="{_HEIGHT - 18}" text-anchor="middle">{_name(size)}</text>'
        for size in sizes
    )
    for place, name in enumerate(dict.fromkeys(point.operation for point in points)):
        colour = _COLOURS[place % len(_COLOURS)]
        line = " ".join(
            f"{x(point.size):.0f},{y(point.cost.cpu_ms):.0f}"
            for point in points
            if point.operation == name
        )
        label = name.replace("`", "")
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
            f'<text x="{_WIDTH - _LEGEND}" y="{_TOP + 12 + 14 * place}" fill="{colour}">'
            f"{label}</text>"
        )
    return "".join(parts)
