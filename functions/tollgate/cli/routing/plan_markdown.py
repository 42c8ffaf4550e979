"""A review as a comment on a pull request: the figures, what is lost, and the rest folded.

All that a pull request may say itself stands in fenced blocks, where GitHub reads no markup, links
nobody and mentions nobody.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tollgate.cli.routing.plan_rows import (
    aligned,
    breaking_rows,
    money,
    note_rows,
    other_rows,
    percent_of,
    printable,
    rise,
)
from tollgate.cli.routing.plan_text import exactness, span
from tollgate.routing.file.problems import render_text
from tollgate.routing.review.replay import TrafficReplay
from tollgate.routing.review.review import Review

# The workflow finds its comment by the first line, and the label in it.
MARKER: Final = "<!-- tollgate-plan"
# GitHub takes 65,536 characters; bytes are never fewer than these, and the frame needs a few.
_BREAKING_BYTES_MAX: Final = 20_000
_OTHER_BYTES_MAX: Final = 30_000
_NOTES_BYTES_MAX: Final = 8_000


def as_markdown(review: Review) -> str:
    """The whole comment, shorter than GitHub's limit."""
    return "\n".join(_lines(review))


def _lines(review: Review) -> Iterator[str]:
    yield f"{MARKER} label={review.label or 'none'} -->"
    names = f"`{_code(review.base)}` → `{_code(review.head)}`"
    if review.errors:
        yield f"### Routing plan {names}: the file must not be used"
        yield ""
        problems = [line for problem in review.errors for line in render_text(problem).splitlines()]
        yield from _fenced([printable(line) for line in problems], "text", _BREAKING_BYTES_MAX)
        return
    yield f"### Routing plan {names}: {_headline(review)}"
    yield ""
    if review.base_is_empty is not None:
        yield f"The file {review.base_is_empty} at `{_code(review.base)}`: all of it is new."
        yield ""
    if review.replay is not None and review.replay.requests:
        yield from _figures(review, review.replay)
        yield ""
    breaking = aligned(breaking_rows(review))
    if breaking:
        yield "**Removed, refused or promised and not kept**"
        yield ""
        yield from _fenced(breaking, "diff", _BREAKING_BYTES_MAX)
    yield from _folded("what changes", aligned(other_rows(review)), _OTHER_BYTES_MAX)
    yield from _folded("what only people read", aligned(note_rows(review)), _NOTES_BYTES_MAX)
    yield _small_print(review)


def _headline(review: Review) -> str:
    replay = review.replay
    if review.label is None:
        return "no request would notice"
    if replay is None or not replay.requests:
        return "no traffic to replay"
    flow = replay.served
    before, after = flow.before_nano_usd, flow.after_nano_usd
    said = f"spend {money(before)} → {money(after)} ({rise(before, after)})"
    refused = sum(each.requests for each in replay.refused.values())
    return f"{said}, {refused:,} requests refused" if refused else said


def _figures(review: Review, replay: TrafficReplay) -> Iterator[str]:
    yield f"Replay of {span(replay)}."
    yield ""
    yield "| | before | after |"
    yield "|---|---:|---:|"
    flow = replay.served
    yield f"| spend | {money(flow.before_nano_usd)} | {money(flow.after_nano_usd)} |"
    for day, later in replay.later.items():
        before, after = money(later.before_nano_usd), money(later.after_nano_usd)
        yield f"| the same from {day} on | {before} | {after} |"
    if replay.dearest_before and replay.dearest_after:
        before = money(replay.dearest_before.before_nano_usd)
        yield f"| dearest request | {before} | {money(replay.dearest_after.after_nano_usd)} |"
    if replay.worst:
        before, after = money(replay.worst.before_nano_usd), money(replay.worst.after_nano_usd)
        yield f"| worst single request | {before} | {after} |"
    moved = f"{replay.moved:,} ({percent_of(replay.moved, replay.requests)})"
    yield f"| requests that move | | {moved} |"
    yield f"| keys affected | | {review.keys_affected} of {len(replay.keys)} |"


def _small_print(review: Review) -> str:
    if review.replay is None:
        return "<sub>No traffic was given to replay.</sub>"
    return f"<sub>{exactness(review.replay)}</sub>" if review.replay.requests else ""


def _folded(title: str, lines: Sequence[str], bytes_max: int) -> Iterator[str]:
    if not lines:
        return
    count = f"{len(lines)} line{'' if len(lines) == 1 else 's'}"
    yield f"<details><summary>{title[:1].upper()}{title[1:]} ({count})</summary>"
    yield ""
    yield from _fenced(lines, "diff", bytes_max)
    yield "</details>"
    yield ""


def _fenced(lines: Sequence[str], language: str, bytes_max: int) -> Iterator[str]:
    """The lines in a fence that none of them can close, as many as fit."""
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}{language}"
    for place, line in enumerate(lines):
        bytes_max -= len(line.encode()) + 1
        if bytes_max < 0:
            yield f"... and {len(lines) - place:,} lines more: `tollgate plan` shows them"
            break
        yield line
    yield fence
    yield ""


def _code(name: str) -> str:
    """A name that cannot end the code it stands in."""
    return printable(name).replace("`", "'")
