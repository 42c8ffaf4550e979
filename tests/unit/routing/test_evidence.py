"""Each price of the routing.yaml that ships is that of its publishers, or says why not: C65.

What they state is kept in infra/catalog/evidence.json, so that no network is needed.
"""

import re

import pytest

from tests.unit.routing.test_routing_yaml import FILE, ROOT
from tollgate.cli.catalog.evidence import read_evidence, write_evidence
from tollgate.cli.catalog.verdicts import Verdict, judge_file
from tollgate.routing.file.load import load

PATH = ROOT / "infra" / "catalog" / "evidence.json"
EVIDENCE = read_evidence(PATH)
VERDICTS = list(judge_file(load(FILE), EVIDENCE))


@pytest.mark.parametrize("verdict", VERDICTS, ids=lambda it: f"{it.place}/{it.endpoint.upstream}")
def test_c65_a_price_is_agreed_or_its_source_says_why_not(verdict: Verdict) -> None:
    assert not verdict.undecided
    assert verdict.price is None
    stated = verdict.endpoint.price.source
    # Those that agree stand first, those that differ behind them with what they have.
    assert stated == verdict.source
    first, *others = stated.split("; ")
    is_alone = len(verdict.agreeing) == 1 and verdict.endpoint.price.source.endswith(" alone")
    assert is_alone == (
        len(EVIDENCE.of(verdict.endpoint)) == 1 and not others and " and " not in first
    )
    page, *publishers = first.removesuffix(" alone").split(" and ")
    if page in verdict.agreeing:
        publishers.insert(0, page)
    else:
        assert re.search(r"^https://|\.com/|router", page), "names the page it was taken from"
    assert publishers == [*verdict.agreeing]
    assert [other.partition(" has ")[0] for other in others] == [*verdict.differing]


def test_the_evidence_is_of_each_endpoint_and_written_in_one_way() -> None:
    endpoints = {f"{it.endpoint.provider} {it.endpoint.upstream}" for it in VERDICTS}
    assert set(EVIDENCE.endpoints) == endpoints
    assert PATH.read_text(encoding="utf-8") == write_evidence(EVIDENCE)
    assert set(EVIDENCE.publishers) == {"genai-prices", "litellm"}


def test_every_last_day_that_a_publisher_states_is_in_the_file() -> None:
    assert [it.place for it in VERDICTS if it.retires is not None] == []
