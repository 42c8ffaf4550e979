"""Markdown output for a review, as a comment on a pull request.

Figures and losses come first, and the rest is collapsed. Text from the pull request is in fenced
blocks, where GitHub renders no markup, links or mentions.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tollgate.cli.routing.plan_rows import (
    align_rows,
    breaking_rows,
    deploy_rows,
    format_change,
    format_money,
    format_percent,
    format_rise,
    make_printable,
    note_rows,
    other_rows,
    secret_rows,
)
from tollgate.cli.routing.plan_text import DEPLOY_FIRST, describe_exactness, describe_span
from tollgate.routing.file.problems import Problem, render_text
from tollgate.routing.review.replay import CostedRequest, Flow, TrafficReplay
from tollgate.routing.review.review import Review

# The start of a comment, before the label; the workflow searches for it to update its comment.
MARKER: Final = "<!-- tollgate-plan"
# Limits that keep all sections together below GitHub's limit of 65,536 characters.
_BREAKING_BYTES_MAX: Final = 16_000
_DEPLOY_BYTES_MAX: Final = 4_000
_OTHER_BYTES_MAX: Final = 20_000
_SECRETS_BYTES_MAX: Final = 10_000
_SECRETS_MOVE: Final = "**A secret goes to a new host**"
_SECRETS_REFUSED: Final = "**A secret would go to a forbidden host**"
_NOTES_BYTES_MAX: Final = 8_000


def as_markdown(review: Review) -> str:
    """Render a review as a comment that GitHub accepts."""
    return "\n".join(_lines(review))


def _lines(review: Review) -> Iterator[str]:
    yield f"{MARKER} label={review.label or 'none'} -->"
    names = f"`{quote_code(review.base)}` → `{quote_code(review.head)}`"
    if review.errors:
        yield f"### Routing plan {names}: the file must not be used"
        yield ""
        yield from _errors(review)
        return
    yield f"### Routing plan {names}: {_headline(review)}"
    yield ""
    if review.base_is_empty is not None:
        yield f"The file {review.base_is_empty} at `{quote_code(review.base)}`: all of it is new."
        yield ""
    secrets = align_rows(secret_rows(review))
    if secrets:
        yield _SECRETS_MOVE
        yield ""
        yield from fence_lines(secrets, "diff", _SECRETS_BYTES_MAX)
    if review.deploy_first:
        yield f"**{DEPLOY_FIRST}**"
        yield ""
        yield from fence_lines(align_rows(deploy_rows(review)), "diff", _DEPLOY_BYTES_MAX)
    if review.replay is not None and review.replay.requests:
        yield from _figures(review, review.replay)
        yield ""
    breaking = align_rows(breaking_rows(review))
    if breaking:
        yield "**Removals, refusals and broken promises**"
        yield ""
        yield from fence_lines(breaking, "diff", _BREAKING_BYTES_MAX)
    yield from fold_lines("what changes", align_rows(other_rows(review)), _OTHER_BYTES_MAX)
    yield from fold_lines("what only people read", align_rows(note_rows(review)), _NOTES_BYTES_MAX)
    yield _small_print(review)


def _errors(review: Review) -> Iterator[str]:
    """Yield the errors about secrets, which GitHub shows in red, then all other errors."""
    secrets = [problem for problem in review.errors if problem.endangers_secret]
    other_errors = [problem for problem in review.errors if not problem.endangers_secret]
    if secrets:
        yield _SECRETS_REFUSED
        yield ""
        lines = [f"- {line}" for line in _printable_lines(secrets)]
        yield from fence_lines(lines, "diff", _SECRETS_BYTES_MAX)
    if other_errors:
        yield from fence_lines(_printable_lines(other_errors), "text", _BREAKING_BYTES_MAX)


def _printable_lines(problems: Sequence[Problem]) -> list[str]:
    lines = (line for problem in problems for line in render_text(problem).splitlines())
    return [make_printable(line) for line in lines]


def _headline(review: Review) -> str:
    replay = review.replay
    if review.label is None:
        return "no request would notice"
    if replay is None or not replay.requests:
        return "no traffic to replay"
    spend = f"spend {format_change(replay.served)} ({format_rise(replay.served)})"
    refused = sum(each.requests for each in replay.refused.values())
    return f"{spend}, {refused:,} requests refused" if refused else spend


def _figures(review: Review, replay: TrafficReplay) -> Iterator[str]:
    yield f"Replay of {describe_span(replay)}."
    yield ""
    yield "| | before | after |"
    yield "|---|---:|---:|"
    yield _cost_row("spend", replay.served, replay.served)
    for day, later in replay.later.items():
        yield _cost_row(f"the same from {day} on", later, later)
    if replay.dearest_before and replay.dearest_after:
        yield _cost_row("dearest request", replay.dearest_before, replay.dearest_after)
    if replay.worst:
        yield _cost_row("worst single request", replay.worst, replay.worst)
    if replay.cached.gain:
        cached = replay.cached
        yield f"| cached prompt tokens of later turns | {cached.before:,} | {cached.after:,} |"
    if replay.batched.requests:
        share = format_percent(replay.batched.requests, replay.requests)
        costs = format_change(replay.batched)
        yield f"| could run in providers' batches | | {share} of the requests: {costs} |"
    moved = f"{replay.moved:,} ({format_percent(replay.moved, replay.requests)})"
    yield f"| requests that move | | {moved} |"
    yield f"| keys affected | | {review.keys_affected} of {len(replay.keys)} |"


def _cost_row(name: str, before: Flow | CostedRequest, after: Flow | CostedRequest) -> str:
    costs = f"{format_money(before.before_nano_usd)} | {format_money(after.after_nano_usd)}"
    return f"| {name} | {costs} |"


def _small_print(review: Review) -> str:
    if review.replay is None:
        return "<sub>No traffic was replayed.</sub>"
    return f"<sub>{describe_exactness(review.replay)}</sub>" if review.replay.requests else ""


def fold_lines(title: str, lines: Sequence[str], bytes_max: int) -> Iterator[str]:
    if not lines:
        return
    count = f"{len(lines)} line{'' if len(lines) == 1 else 's'}"
    yield f"<details><summary>{title[:1].upper()}{title[1:]} ({count})</summary>"
    yield ""
    yield from fence_lines(lines, "diff", bytes_max)
    yield "</details>"
    yield ""


def fence_lines(
    lines: Sequence[str], language: str, bytes_max: int, command: str = "tollgate plan"
) -> Iterator[str]:
    """Yield as many lines as fit, in a fence longer than any run of backticks in the lines.

    `command` shows the lines that are left out.
    """
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}{language}"
    for index, line in enumerate(lines):
        bytes_max -= len(line.encode()) + 1
        if bytes_max < 0:
            yield f"... and {len(lines) - index:,} more lines, which `{command}` shows"
            break
        yield line
    yield fence
    yield ""


def quote_code(name: str) -> str:
    """Return a name that is safe in inline code."""
    return make_printable(name).replace("`", "'")
