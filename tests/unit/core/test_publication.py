"""Which catalog a key is served by.

Keeps C54, C57.
"""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tollgate.core.routing.canary import Terms
from tollgate.core.routing.publication import Publication, Signature, publish_canary, publish_to_all

LIVE, CANDIDATE = "a" * 64, "c" * 64
KEYS = [f"key-{number}" for number in range(2_000)]
SIGNED = Signature(by="somebody", at_s=1_000)


def canary(percent: int, candidate: str = CANDIDATE) -> Publication:
    return publish_canary(publish_to_all(None, LIVE, SIGNED), candidate, percent, SIGNED)


@given(percent=st.integers(1, 99))
def test_c54_a_canary_gets_its_share_of_the_keys(percent: int) -> None:
    publication = canary(percent)
    share = sum(publication.sha_for(key) == CANDIDATE for key in KEYS) / len(KEYS)
    assert abs(share - percent / 100) < 0.05


@given(percent=st.integers(1, 98), key=st.text(min_size=1))
def test_c54_a_key_stays_with_a_candidate_that_grows(percent: int, key: str) -> None:
    if canary(percent).sha_for(key) == CANDIDATE:
        assert canary(percent + 1).sha_for(key) == CANDIDATE


def test_c54_another_candidate_tries_other_keys() -> None:
    first, second = canary(10), canary(10, "d" * 64)
    tried = [{key for key in KEYS if each.sha_for(key) != LIVE} for each in (first, second)]
    assert len(tried[0] & tried[1]) < len(tried[0]) / 2


def test_c54_whoever_has_no_key_sees_what_is_live() -> None:
    assert canary(99).sha_for(None) == LIVE


def test_c54_publishing_ends_a_canary_and_remembers_what_was_live() -> None:
    after = publish_to_all(canary(5), CANDIDATE, SIGNED)
    assert (after.live, after.previous, after.candidate, after.percent) == (
        CANDIDATE,
        LIVE,
        None,
        0,
    )
    assert after.revision == 3
    again = publish_to_all(after, CANDIDATE, replace(SIGNED, at_s=2_000))
    assert (again.previous, again.moved_s) == (LIVE, 2_000)


def test_c54_a_canary_of_nothing_is_none() -> None:
    ended = publish_canary(canary(5), CANDIDATE, 0, SIGNED)
    assert (ended.live, ended.candidate, ended.percent) == (LIVE, None, 0)


def test_c57_a_larger_share_starts_another_test_of_the_same_terms() -> None:
    terms = Terms(worse_percent={"errors": 1}, false_alarms_percent=5)
    first = publish_canary(canary(0), CANDIDATE, 5, SIGNED, terms=terms)
    grown = publish_canary(first, CANDIDATE, 20, replace(SIGNED, at_s=2_000), terms=terms)
    assert (grown.terms, grown.revision, grown.moved_s) == (terms, first.revision + 1, 2_000)
    assert publish_canary(grown, CANDIDATE, 0, SIGNED).terms is None
    assert publish_to_all(grown, CANDIDATE, SIGNED).terms is None
