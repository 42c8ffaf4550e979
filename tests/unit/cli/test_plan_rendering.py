"""What a plan looks like in a terminal, as a comment and for programs.

Keeps C53, C65.
"""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.unit.cli.planned import review
from tollgate.cli.options import EXIT_CHANGES, EXIT_ERROR, EXIT_SAME
from tollgate.cli.routing.plan import exit_status
from tollgate.cli.routing.plan_json import as_data
from tollgate.cli.routing.plan_markdown import as_markdown
from tollgate.cli.routing.plan_rows import format_money, format_rise
from tollgate.cli.routing.plan_text import as_text
from tollgate.routing.file.problems import Problem
from tollgate.routing.review.cached_prompts import CachedPrompts
from tollgate.routing.review.diff import Change, Fact
from tollgate.routing.review.replay import Flow, TrafficReplay
from tollgate.routing.review.review import Review

GOLDEN = Path(__file__).parent
# What a pull request could write into a description, an upstream or a name of metadata.
HOSTILE = "x```\n</details>\n<img src=//evil> @everyone [a](//evil)\u202e\x1b[31m"


@pytest.mark.parametrize(
    ("rendered", "golden"),
    [(as_text, "planned.txt"), (as_markdown, "planned.md"), (as_data, "planned.json")],
)
def test_a_plan_reads_as_it_should(rendered, golden: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert f"{rendered(review(tmp_path))}\n" == (GOLDEN / golden).read_text()


def test_the_guide_and_the_readme_show_it_as_it_is() -> None:
    docs = GOLDEN.parents[2] / "docs" / "routing-plan.md"
    golden = (GOLDEN / "planned.txt").read_text()
    assert f"\n{golden}```\n" in docs.read_text()
    readme = (GOLDEN.parents[2] / "README.md").read_text()
    shown = [
        line for line in readme.splitlines() if re.match(r"[-!~] (refused|promise|price) ", line)
    ]
    assert len(shown) == 3
    assert set(shown) <= set(golden.splitlines())


def test_without_traffic_it_says_how_to_name_some(tmp_path: Path) -> None:
    found = review(tmp_path, replayed=False)
    assert "--traffic" in as_text(found)
    assert "no traffic to replay" in as_markdown(found)
    assert json.loads(as_data(found))["replay"] is None


def test_c53_a_plan_says_how_many_prompt_tokens_are_cached_if_that_changes() -> None:
    cached = CachedPrompts(prompt_tokens=9_000, before=1_000, after=4_000)
    found = Review(base="a", head="b", replay=TrafficReplay(requests=4, cached=cached))
    assert "Cached prompt tokens 1,000 → 4,000 of 9,000 in later turns" in as_text(found)
    assert "| cached prompt tokens of later turns | 1,000 | 4,000 |" in as_markdown(found)
    same = CachedPrompts(prompt_tokens=9_000, before=1_000, after=1_000)
    found = Review(base="a", head="b", replay=TrafficReplay(requests=4, cached=same))
    assert "ached prompt" not in as_text(found) + as_markdown(found)


def test_c83_a_plan_says_what_the_traffic_would_have_cost_in_batches() -> None:
    replay = TrafficReplay(requests=4, batched=Flow(3, 30_000_000, 15_000_000))
    found = Review(base="a", head="b", replay=replay)
    assert "Providers' batches could run 75.0 % of requests: $0.030 → $0.015" in as_text(found)
    assert "| 75.0 % of the requests: $0.030 → $0.015 |" in as_markdown(found)


def test_c53_requests_that_neither_revision_serves_are_counted() -> None:
    replay = TrafficReplay(requests=3, refused_by_both=2)
    found = Review(base="a", head="b", replay=replay)
    for rendered in (as_text(found), as_markdown(found)):
        assert "Neither revision serves 2 requests (66.7 %)." in rendered
    every = Review(base="a", head="b", replay=TrafficReplay(requests=2))
    assert "Neither" not in as_text(every)


def test_c53_the_price_of_a_tool_has_the_share_of_traffic_that_ran_it() -> None:
    fact = Fact(name="call", before="0.008", after="0.005")
    change = Change(kind="changed", what="price", subject="web_search", facts=(fact,))
    replay = TrafficReplay(requests=4, fees=Counter(web_search=1))
    found = Review(base="a", head="b", changes=(change,), replay=replay)
    assert "call 0.008 → 0.005   25.0 % of traffic" in as_text(found)


def test_nothing_that_a_pull_request_says_leaves_its_fence() -> None:
    fact = Fact(name=HOSTILE, before=HOSTILE, after=HOSTILE)
    hostile = tuple(
        Change(kind=kind, what=what, subject=HOSTILE, facts=(fact,))
        for kind, what in (("removed", "alias"), ("changed", "model"), ("changed", "note"))
    )
    comment = as_markdown(Review(base="`</b>", head="41be77a", changes=hostile))
    outside = re.sub(r"^(`{3,})\w+\n.*?^\1$", "", comment, flags=re.DOTALL | re.MULTILINE)
    for word in ("evil", "everyone", "\x1b", "\u202e"):
        assert word not in outside
    assert outside.count("<details>") == outside.count("</details>") == 2
    assert "\x1b" not in comment
    assert "\u202e" not in comment
    assert "`'</b>`" in outside


def test_errors_of_the_file_are_shown_in_a_fence_and_nothing_else_is() -> None:
    problem = Problem(file="routing.yaml", line=1, column=1, code="R004", message=HOSTILE)
    broken = Review(base="a", head="b", errors=(problem,))
    comment = as_markdown(broken)
    assert comment.startswith("<!-- tollgate-plan label=routing:invalid -->\n")
    assert "must not be used" in comment
    assert comment.rstrip().endswith("````")
    assert exit_status(broken) == EXIT_ERROR


def test_a_comment_is_shorter_than_github_allows_and_says_what_it_leaves_out() -> None:
    wide = Fact(name="upstream", before="\u00e4" * 250, after="\u00f6" * 250)
    many = tuple(
        Change(kind=kind, what=what, subject=f"acme/{number}", facts=(wide,))
        for kind, what in (("removed", "model"), ("changed", "model"), ("changed", "note"))
        for number in range(2_000)
    )
    comment = as_markdown(Review(base="a", head="b", changes=many))
    assert len(comment.encode()) < 65_536
    assert comment.count("more lines, which `tollgate plan` shows") == 3


def test_the_gravest_change_is_the_label_and_decides_the_status(tmp_path: Path) -> None:
    whole = review(tmp_path)
    kinds = {change.what: change for change in whole.changes if change.kind == "changed"}
    bare = Review(base="a", head="b")
    assert (bare.label, exit_status(bare)) == (None, EXIT_SAME)
    for changes, label, status in (
        ((kinds["note"],), None, EXIT_SAME),
        ((kinds["tier"],), "routing:route", EXIT_CHANGES),
        ((kinds["tier"], kinds["price"]), "routing:price", EXIT_CHANGES),
        (whole.removals, "routing:breaking", EXIT_CHANGES),
    ):
        found = replace(bare, changes=changes)
        assert (found.label, exit_status(found)) == (label, status)
    assert replace(bare, promises=whole.promises).label == "routing:breaking"
    assert replace(bare, replay=whole.replay).label == "routing:breaking"


def test_small_amounts_keep_the_digits_that_tell_them_apart() -> None:
    assert [
        format_money(each) for each in (0, 12_345, 5_500_000, 5_537_120_000_000, -20_000_000)
    ] == [
        "$0.00",
        "$0.000012",
        "$0.0055",
        "$5,537.12",
        "-$0.020",
    ]
    assert format_rise(Flow(1, 0, 1_000_000_000)) == "+$1.00"
    assert format_rise(Flow(1, 4_000_000_000, 3_000_000_000)) == "-$1.00, -25.0 %"
