"""Links to sources in an answer, as citations.

Keeps C73.
"""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollgate.core.server_tools import Source
from tollgate.engine.rounds.citations import find_citations, sources_by_url

A = "https://a.example/page"
WIKI = "https://b.example/wiki/Rain_(weather)"
SOURCES = sources_by_url([Source(url=A, title="A"), Source(url=WIKI), Source(url=A, title="later")])


def cited(text: str) -> list[tuple[str, str | None, str]]:
    """The address, the title and the stretch of each citation."""
    return [
        (found.url or "", found.title, text[found.start : found.end])
        for found in find_citations(text, SOURCES)
    ]


@pytest.mark.parametrize(
    ("text", "stretches"),
    [
        (f"See {A}.", [(A, "A", A)]),
        (f"See [it]({A}), then {A}/", [(A, "A", f"[it]({A})"), (A, "A", A + "/")]),
        (f"({A})", [(A, "A", A)]),
        (f"[rain]({WIKI})", [(WIKI, "rain", f"[rain]({WIKI})")]),
        (f"see {WIKI}!", [(WIKI, None, WIKI)]),
        (f"[a [b]]({A}#part)", [(A, "A", f"[b]]({A}#part)")]),
        (f'[it]({A} "title")', [(A, "A", A)]),
        (f"**{A}**", [(A, "A", A)]),
        ("https://other.example", []),
        (f"{A}x {A}?q=1", []),
        ("[]() [x](", []),
        ("", []),
    ],
)
def test_c73_a_link_to_a_source_is_a_citation_of_its_stretch(
    text: str, stretches: list[tuple[str, str | None, str]]
) -> None:
    assert cited(text) == stretches


@given(st.lists(st.sampled_from([A, WIKI, "[", "]", "](", "(", ")", " ", "x", "https://", "#"])))
def test_c73_citations_lie_in_the_text_in_order_and_apart(pieces: list[str]) -> None:
    text = "".join(pieces)
    end = 0
    for found in find_citations(text, SOURCES):
        assert found.start is not None
        assert found.end is not None
        assert end <= found.start < found.end <= len(text)
        end = found.end


@pytest.mark.parametrize(
    "unit",
    ["[", "](", "](https://a.example/page)", "https://", "https://(", "((", "[https://a.example/"],
)
def test_c73_the_time_is_linear_in_the_text(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    began = time.process_time()
    found = list(find_citations(text, SOURCES))
    assert time.process_time() - began < 3
    assert len(found) <= 256
