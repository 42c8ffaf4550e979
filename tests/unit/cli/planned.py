"""A routing file before and after a pull request, and traffic that the one before has served."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

from tests.traffic import line, planning_request, record
from tollgate.routing.file.compile import canonical_json, compile_catalog
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.review.diff import find_differing_days
from tollgate.routing.review.replay import replay_traffic
from tollgate.routing.review.review import Review, find_differences
from tollgate.routing.review.traffic import read_traffic
from tollgate.routing.routing_file import Routing

TODAY = date(2026, 11, 21)
BEFORE = (Path(__file__).parent / "explained.yaml").read_text().replace("2027-01-01", "2099-01-01")
_NEW_MODEL = """\
  acme/new:
    name: New
    context: 9000
    max_output: 900
    endpoints:
      - provider: openai
        upstream: new
        price: { input: 1.5, output: 3, source: made up, checked: 2026-11-21 }
"""
_PLAIN = "        price: { input: 1, output: 4, source: made up, checked: 2026-11-21 }\n"
_DATED = """\
        overrides:
          - when: { from: 2098-01-01 }
            price: { output: 6 }
"""
_EDITS = (
    ("input: 2.2, output: 11", "input: 2.42, output: 12.1"),
    ("acme/large: 90, acme/plain: 10", "acme/large: 70, acme/plain: 30"),
    (_PLAIN, f"{_PLAIN}{_DATED}"),
    ("aliases:\n  best: { to: smart }\n", ""),
    (
        "    description: By tier and by size\n",
        "    description: By tier\n" + "    promise: { output_price_max: 15 }\n",
    ),
    ("max_cost_usd_per_request: 0.02", "max_cost_usd_per_request: 0.01"),
    ("  acme/small:\n", f"{_NEW_MODEL}  acme/small:\n"),
)


def after() -> str:
    """The file as the pull request has it."""
    text = BEFORE
    for old, new in _EDITS:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def traffic(catalog: Catalog) -> Iterator[bytes]:
    """Sixty requests for three names, by keys of two tiers."""
    for number in range(60):
        name = ("smart", "best", "acme/large")[number % 3]
        tier = "free" if name == "smart" and number % 4 == 0 else "team"
        tokens = (1_000 * (1 + number % 5), 400 + number)
        yield line(
            record(catalog, planning_request(name, number, tier=tier), number, tokens=tokens)
        )


def review(folder: Path, *, replayed: bool = True) -> Review:
    """What the pull request comes to."""
    old, new = routing(folder, BEFORE), routing(folder, after())
    base, head = (Catalog.from_json(canonical_json(each)) for each in (old, new))
    changes, promises = find_differences(old, new, TODAY)
    days = find_differing_days(old, new, TODAY)
    return Review(
        base="8f2c1d0",
        head="41be77a",
        changes=changes,
        promises=promises,
        replay=(
            replay_traffic(read_traffic(traffic(base)), base, head, days) if replayed else None
        ),
    )


def routing(folder: Path, text: str) -> Routing:
    """A file's routing."""
    file = folder / "routing.yaml"
    file.write_text(text)
    return compile_catalog(file).routing
