"""Dollars for a million requests by where chat runs, from list prices and measured CPU time.

`python -m bench.costs` writes the table of docs/performance.md, and that of its numbers in
bench/README.md. Prices are of us-east-1, Linux on arm64, without discounts. The provider's bill,
DynamoDB and logs are left out, because they cost the same everywhere.
"""

from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Final

from msgspec import Struct

PAGE: Final = Path(__file__).parents[1] / "docs" / "performance.md"
SOURCES: Final = Path(__file__).parent / "README.md"
BEGIN: Final = "<!-- made by python -m bench.costs -->"
END: Final = "<!-- end -->"
RATES: Final = (1, 10, 100, 1_000)
MILLION: Final = 1_000_000
_HOUR_S: Final = 3_600


class Row(Struct, frozen=True):
    """A number of the arithmetic, and where it comes from."""

    value: float
    unit: str
    source: str


_LAMBDA: Final = "cloudchipr.com/blog/aws-lambda-pricing, 2026-11-28"
_MANAGED: Final = "aws.amazon.com/lambda/pricing, 2026-09-20"
_TOOLKIT: Final = "github.com/aws/agent-toolkit-for-aws, 2026-11-28"
_FARGATE: Final = "vantage.sh/blog/fargate-pricing, 2026-11-28"
_BALANCER: Final = "awsnegotiations.com/elastic-load-balancer-cost, 2026-05"
ROWS: Final = {
    "answer": Row(5.0, "s of one answer", "assumed"),
    "answer bytes": Row(60_000, "bytes of one streamed answer", "200 events of 300 bytes"),
    "request CPU": Row(0.0344, "vCPU s: 200 × 166 µs a chunk, 1.2 ms ledger", "bench/README.md"),
    "load": Row(0.7, "of a vCPU or of the places of an environment in use", "assumed"),
    "function GB": Row(0.5, "GB, ChatMemoryMb", "infra/template.yaml"),
    "function GB s": Row(0.0000133334, "$ a GB s", _LAMBDA),
    "invocation": Row(0.20, "$ a million", _MANAGED),
    "API Gateway": Row(3.50, "$ a million", "docs/performance.md"),
    "instance vCPU": Row(0.0408, "$ a vCPU h of m7g", "factualminds.com, 2026-06-17"),
    "management": Row(0.15, "of the instance's price", _MANAGED),
    "reserved vCPU": Row(1, "vCPU of each instance", _TOOLKIT),
    "instances": Row(3, "instances at least", _TOOLKIT),
    "task vCPU": Row(0.03238, "$ a vCPU h", _FARGATE),
    "task GB": Row(0.00356, "$ a GB h", _FARGATE),
    "tasks": Row(2, "tasks of 1 vCPU and 2 GB at least", "assumed"),
    "balancer": Row(0.0225, "$ an h", _BALANCER),
    "balancer unit": Row(0.008, "$ an h for each GB an h, or 3,000 connections", _BALANCER),
}
# Lambda chooses the instance type; the arithmetic takes the cheapest of these sizes.
INSTANCE_VCPUS: Final = (2, 4, 8, 16)


def _value(name: str) -> float:
    return ROWS[name].value


def cost_on_demand() -> float:
    """Return the dollars of a million requests, each of which has an environment."""
    return (
        MILLION * _value("answer") * _value("function GB") * _value("function GB s")
        + _value("invocation")
        + _value("API Gateway")
    )


def cost_managed(rate: float, concurrency: int) -> float:
    """Return the dollars of a million requests at a rate, on managed instances."""
    by_places = rate * _value("answer") / concurrency
    by_cpu = rate * _value("request CPU")
    environments = ceil(max(by_places, by_cpu) / _value("load"))
    hour = min(
        max(_value("instances"), ceil(environments / (vcpus - _value("reserved vCPU"))))
        * vcpus
        * _value("instance vCPU")
        for vcpus in INSTANCE_VCPUS
    )
    hour *= 1 + _value("management")
    return _a_million(hour, rate) + _value("invocation") + _value("API Gateway")


def cost_serve(rate: float) -> float:
    """Return the dollars of a million requests at a rate, by `tollgate serve` on Fargate."""
    tasks = max(_value("tasks"), ceil(rate * _value("request CPU") / _value("load")))
    gb_hour = rate * _value("answer bytes") * _HOUR_S / 1e9
    connections = rate * _value("answer") / 3_000
    hour = (
        tasks * (_value("task vCPU") + 2 * _value("task GB"))
        + _value("balancer")
        + max(gb_hour, connections) * _value("balancer unit")
    )
    return _a_million(hour, rate)


def break_even(concurrency: int) -> float:
    """Return the lowest rate, in tenths, from which managed instances cost less."""
    return next(
        tenths / 10
        for tenths in range(1, 1_000)
        if cost_managed(tenths / 10, concurrency) < cost_on_demand()
    )


def _a_million(hour: float, rate: float) -> float:
    return hour * MILLION / (rate * _HOUR_S)


def _digits(value: float) -> str:
    return f"{value:.10f}".rstrip("0").rstrip(".")


def write_table() -> Iterator[str]:
    """Yield the lines of the table of prices."""
    yield "| requests a second | on demand | managed, 16 at once | managed, 64 at once | `serve` |"
    yield "|---|---|---|---|---|"
    for rate in RATES:
        cells = (
            cost_on_demand(),
            cost_managed(rate, 16),
            cost_managed(rate, 64),
            cost_serve(rate),
        )
        yield f"| {rate:,} | " + " | ".join(f"{cell:,.2f}" for cell in cells) + " |"
    yield ""
    yield (
        f"From {break_even(16):.1f} requests a second on (16 at once), day and night, managed"
        " instances cost less than functions on demand."
    )


def write_sources() -> Iterator[str]:
    """Yield the lines of the table of numbers and their sources."""
    yield "| number | | source |"
    yield "|---|---|---|"
    for name, row in ROWS.items():
        yield f"| {name} | {_digits(row.value)} {row.unit} | {row.source} |"


def written(page: str, lines: Iterator[str]) -> str:
    """Return the page with these lines as its table."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}"


if __name__ == "__main__":
    for page, lines in ((PAGE, write_table()), (SOURCES, write_sources())):
        page.write_text(written(page.read_text(encoding="utf-8"), lines), encoding="utf-8")
