"""Workspaces are searched once a minute each, and few of them are remembered."""

from tests.clocks import STARTED_S
from tollgate.stores.files.usage import SEARCHED_MAX, RecentSearches


def test_a_workspace_is_searched_once_a_minute() -> None:
    searches = RecentSearches()
    moments = (0, 1, 59, 60, 119, 120)
    assert [searches.begin("acme", STARTED_S + after) for after in moments] == [
        *(True, False, False),
        *(True, False, True),
    ]


def test_the_searches_that_are_remembered_are_bounded() -> None:
    searches = RecentSearches()
    for place in range(3 * SEARCHED_MAX):
        assert searches.begin(f"workspace-{place}", STARTED_S)
    assert len(searches) == SEARCHED_MAX
    assert not searches.begin(f"workspace-{3 * SEARCHED_MAX - 1}", STARTED_S + 1)
