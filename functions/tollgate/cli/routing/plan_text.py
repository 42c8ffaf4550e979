"""Text output for a review."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import click

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
from tollgate.routing.file.problems import render_text
from tollgate.routing.review.cached_prompts import CachedPrompts
from tollgate.routing.review.replay import TrafficReplay
from tollgate.routing.review.review import Review

_NO_TRAFFIC: Final = (
    "No traffic is replayed: name a file with --traffic, or a gateway with --url and TOLLGATE_KEY."
)

DEPLOY_FIRST: Final = (
    "Deploy first: until `make deploy`, `tollgate publish` refuses names unknown to the stack."
)


def as_text(review: Review) -> str:
    """Render a review as text, losses first."""
    return "\n".join(_lines(review))


def describe_span(replay: TrafficReplay) -> str:
    """Return the size and days of a replay: `412,306 requests, 2026-11-14 to 2026-11-21`."""
    if not replay.requests:
        return "no requests"
    first, last = (
        datetime.fromtimestamp(second, UTC).date() for second in (replay.first_s, replay.last_s)
    )
    days = f"{first}" if first == last else f"{first} to {last}"
    return f"{replay.requests:,} request{'' if replay.requests == 1 else 's'}, {days}"


def describe_exactness(replay: TrafficReplay) -> str:
    """Return sentences about the accuracy of a replay's figures."""
    recorded = format_percent(replay.as_recorded, replay.requests)
    sentences = (
        f"Figures are for first attempts without cooldowns, at the recorded tokens and times; "
        f"{recorded} of the requests had the route and cost of the base."
    )
    if replay.refused or replay.admitted:
        sentences += " Spend covers requests that both revisions serve."
    if replay.refused_by_both:
        share = format_percent(replay.refused_by_both, replay.requests)
        sentences += f" Neither revision serves {replay.refused_by_both:,} requests ({share})."
    if replay.unplanned:
        sentences += f" {replay.unplanned:,} records of lost requests could not be replayed."
    return sentences


def describe_cached(cached: CachedPrompts) -> str:
    """Return the change in cached tokens: `12,000 → 30,000 of 64,000 in later turns`."""
    return f"{cached.before:,} → {cached.after:,} of {cached.prompt_tokens:,} in later turns"


def _lines(review: Review) -> Iterator[str]:
    names = f"Routing plan  {make_printable(review.base)} → {make_printable(review.head)}"
    if review.errors:
        yield f"{names}  must not be used"
        for problem in review.errors:
            shown = render_text(problem)
            yield _red(shown) if problem.endangers_secret else shown
        yield f"Label: {review.label}"
        return
    replay = review.replay
    yield names if replay is None else f"{names}        replay of {describe_span(replay)}"
    if review.base_is_empty is not None:
        yield f"At {make_printable(review.base)} the file {review.base_is_empty}: all of it is new."
    if replay is not None and replay.requests:
        yield from _figures(replay)
    if review.secret_moves:
        yield ""
        yield from map(_red, align_rows(secret_rows(review)))
    if review.deploy_first:
        yield ""
        yield DEPLOY_FIRST
        yield from align_rows(deploy_rows(review))
    for rows in (breaking_rows(review) + other_rows(review), note_rows(review)):
        if rows:
            yield ""
            yield from align_rows(rows)
    yield ""
    if replay is None:
        yield _NO_TRAFFIC
    elif replay.requests:
        yield describe_exactness(replay)
    yield _verdict(review)


def _red(line: str) -> str:
    return click.style(line, fg="red", bold=True)


def _figures(replay: TrafficReplay) -> Iterator[str]:
    flow = replay.served
    dearest = ""
    if replay.dearest_before and replay.dearest_after:
        before = format_money(replay.dearest_before.before_nano_usd)
        after = format_money(replay.dearest_after.after_nano_usd)
        dearest = f"   dearest request {before} → {after}"
    yield f"Spend {format_change(flow)} ({format_rise(flow)}){dearest}"
    for day, later in replay.later.items():
        yield f"Spend from {day} on {format_change(later)} ({format_rise(later)})"
    if replay.moves:
        share = format_percent(replay.moved, replay.requests)
        yield f"Moved {replay.moved:,} of {replay.requests:,} requests ({share})"
    if replay.cached.gain:
        yield f"Cached prompt tokens {describe_cached(replay.cached)}"
    if replay.batched.requests:
        share = format_percent(replay.batched.requests, replay.requests)
        yield f"Providers' batches could run {share} of requests: {format_change(replay.batched)}"
    if (worst := replay.worst) is not None:
        names = f"{make_printable(worst.id)} for {make_printable(worst.requested)}"
        yield f"Worst {names}: {format_change(worst)}"


def _verdict(review: Review) -> str:
    parts = []
    if review.replay is not None and review.replay.keys:
        parts.append(f"Keys affected: {review.keys_affected} of {len(review.replay.keys)}.")
    if review.label is None:
        parts.append("No request would notice.")
    else:
        parts.append("" if review.removals else "No removals.")
        parts.append(f"Label: {review.label}")
    return "  ".join(filter(None, parts))
