"""The row that says for which generations credit is held."""

from tollgate.cli.gateway.limits import explain_holds


def test_holds_are_explained_and_without_any_the_cell_is_empty() -> None:
    since = "2026-11-21T12:30:01Z"
    holds = {"generations": 2, "oldest": "gen-57KCytW0sEWbns0", "oldest_since": since}
    assert (
        explain_holds({"holds": holds})
        == f"2 generations, the oldest gen-57KCytW0sEWbns0 since {since}"
    )
    assert explain_holds({"holds": holds | {"generations": 0}}) == ""
    assert explain_holds({}) == ""
