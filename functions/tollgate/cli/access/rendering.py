"""Text and Markdown of a plan of access.yaml."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final

from tollgate.cli.access.differences import (
    AccessPlan,
    Drift,
    LimitSum,
    ObjectChange,
    SettingChange,
)
from tollgate.cli.routing.plan_markdown import fence_lines, quote_code
from tollgate.cli.routing.plan_rows import ReviewRow, Sign, align_rows, format_money
from tollgate.core.money.amounts import nano_usd
from tollgate.stores.rules.periods import PERIODS

# The start of a comment, by which the workflow finds its comment; the label follows.
_MARKER: Final = "<!-- tollgate-access-plan"
NOTHING: Final = "Nothing to do."
_COMMAND: Final = "tollgate access plan"
_CHANGES_BYTES_MAX: Final = 30_000
_DRIFT_BYTES_MAX: Final = 20_000
_NAMES_MAX: Final = 10
Authors = Mapping[tuple[str, str], str]


def access_text(plan: AccessPlan, authors: Authors) -> str:
    """Render a plan for a terminal."""
    return "\n".join(_text_lines(plan, authors))


def access_markdown(plan: AccessPlan, authors: Authors) -> str:
    """Render a plan as a comment that GitHub accepts."""
    return "\n".join(_markdown_lines(plan, authors))


def refusal_markdown(sentences: Sequence[str]) -> str:
    """Render the reasons why a file must not be applied as a comment."""
    first = f"{_MARKER} label=access:invalid -->"
    lines = [first, "### Access plan: the file must not be applied", ""]
    return "\n".join([*lines, *fence_lines(sentences, "text", _CHANGES_BYTES_MAX, _COMMAND)])


def change_rows(changes: Sequence[ObjectChange], authors: Authors) -> list[ReviewRow]:
    """Return a row for each change; `-` marks changes that take something away."""
    return [_row(change, authors) for change in changes]


def _text_lines(plan: AccessPlan, authors: Authors) -> Iterator[str]:
    yield f"workspace {plan.workspace_id}: {_headline(plan)}"
    yield from align_rows(change_rows(plan.changes, authors))
    if plan.limits:
        yield ""
        yield from (f"{name}: {before} → {after}" for name, before, after in _limit_cells(plan))
    if plan.drift:
        yield ""
        yield "different from the file, and left unchanged:"
        yield from align_rows(_drift_rows(plan.drift, authors))


def _markdown_lines(plan: AccessPlan, authors: Authors) -> Iterator[str]:
    yield f"{_MARKER} label={'access:changes' if plan.changes else 'none'} -->"
    yield f"### Access plan for `{quote_code(plan.workspace_id)}`: {_headline(plan)}"
    yield ""
    if plan.limits:
        yield "| | before | after |"
        yield "|---|---:|---:|"
        yield from (f"| {' | '.join(cells)} |" for cells in _limit_cells(plan))
        yield ""
    losses = [change for change in plan.changes if change.is_loss]
    others = [change for change in plan.changes if not change.is_loss]
    for title, changes in (("Who loses what", losses), ("Other changes", others)):
        if changes:
            yield f"**{title}**"
            yield ""
            lines = align_rows(change_rows(changes, authors))
            yield from fence_lines(lines, "diff", _CHANGES_BYTES_MAX // 2, _COMMAND)
    if plan.drift:
        yield "**Different from the file, and left unchanged**"
        yield ""
        lines = align_rows(_drift_rows(plan.drift, authors))
        yield from fence_lines(lines, "text", _DRIFT_BYTES_MAX, _COMMAND)


def _headline(plan: AccessPlan) -> str:
    if not plan.changes:
        return NOTHING
    added = sum(change.id is None for change in plan.changes)
    stopped = sum(change.stops for change in plan.changes)
    counts = {"added": added, "changed": len(plan.changes) - added - stopped, "stopped": stopped}
    return ", ".join(f"{count} {verb}" for verb, count in counts.items() if count)


def _row(change: ObjectChange, authors: Authors) -> ReviewRow:
    texts = [_setting(change, setting, authors) for setting in change.settings]
    if change.stops:
        texts.insert(0, "stops: not in the file" if change.unlisted else "stops")
    if change.affected:
        texts.append(f"with {_names(change.affected)}")
    sign: Sign = "+" if change.id is None else "-" if change.is_loss else "~"
    return ReviewRow(sign, change.kind.noun, change.name, "; ".join(filter(None, texts)))


def _setting(change: ObjectChange, setting: SettingChange, authors: Authors) -> str:
    if change.id is None:
        return _stated(setting)
    if (setting.name, setting.stated) == change.kind.stops_by:
        return ""
    return _difference(setting) + _set_by(change.id, setting, authors)


def _set_by(object_id: str, setting: SettingChange, authors: Authors) -> str:
    author = authors.get((object_id, setting.name))
    return "" if author is None else f" (set outside the file by {author})"


def _drift_rows(drift: Sequence[Drift], authors: Authors) -> list[ReviewRow]:
    rows = []
    for each in drift:
        text = "is not in the file"
        if each.setting is not None:
            live = _difference(each.setting, to_live=True)
            text = f"{live}, until {each.until}{_set_by(each.id, each.setting, authors)}"
        rows.append(ReviewRow("!", each.kind.noun, each.name, text))
    return rows


def _limit_cells(plan: AccessPlan) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each sum of limits, and the dollars before and after."""
    for change in plan.limits:
        is_budget = change.subject == "budget"
        name = "budget" if is_budget else f"limits of {change.subject}"
        more = change.after.usd - change.before.usd
        after = _limit_sum(change.after)
        if change.before.usd and change.after.usd:
            after += f" ({'-' if more < 0 else '+'}{_money(abs(more))})"
        yield f"{name}, {change.period}", _limit_sum(change.before), after


def _limit_sum(limits: LimitSum) -> str:
    if not limits.usd:
        return "no limit" if limits.unlimited else "none"
    more = f", {limits.unlimited} without a limit" if limits.unlimited else ""
    return f"{_money(limits.usd)}{more}"


def _stated(setting: SettingChange) -> str:
    if isinstance(setting.stated, Mapping):
        limits = setting.stated.items()
        return ", ".join(f"{setting.name} {name} {_value(setting.name, it)}" for name, it in limits)
    return f"{setting.name} {_value(setting.name, setting.stated)}"


def _difference(setting: SettingChange, *, to_live: bool = False) -> str:
    """Return the old and the new value: `limits day $5.00 → $10.00`."""
    old, new = (setting.stated, setting.live) if to_live else (setting.live, setting.stated)
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        order = [*PERIODS, *sorted({*old, *new} - set(PERIODS))]
        return ", ".join(
            f"{setting.name} {name} {_value(setting.name, old.get(name))} → "
            f"{_value(setting.name, new.get(name))}"
            for name in order
            if old.get(name) != new.get(name)
        )
    if isinstance(old, tuple) and isinstance(new, tuple):
        taken = ", ".join(sorted(set(old) - set(new)))
        given = ", ".join(sorted(set(new) - set(old)))
        name = setting.name
        parts = (f"loses {name} {taken}" if taken else "", f"gets {name} {given}" if given else "")
        return ", ".join(filter(None, parts)) or f"{name} in another order"
    return f"{setting.name} {_value(setting.name, old)} → {_value(setting.name, new)}"


def _value(name: str, value: object) -> str:
    match value:
        case None:
            return "all" if name == "models" else "no limit" if name == "limits" else "not set"
        case bool():
            return "true" if value else "false"
        case Decimal():
            return _money(value)
        case tuple():
            return ", ".join(map(str, value)) or "none"
        case int() if name == "expires_at":
            return datetime.fromtimestamp(value, UTC).isoformat().replace("+00:00", "Z")
        case _:
            return str(value)


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMES_MAX])
    more = len(names) - _NAMES_MAX
    word = "key" if len(names) == 1 else "keys"
    return f"{word} {shown}" + (f" and {more} more" if more > 0 else "")


def _money(amount: Decimal) -> str:
    return format_money(nano_usd(amount))
