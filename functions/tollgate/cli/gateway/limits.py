"""Command-line options, table cells and bars for the limits of keys, teams and members."""

import sys
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import wraps
from typing import Any, Final

import click

from tollgate.cli.options import without_none
from tollgate.cli.tables import OutputStyle, dollars, exact
from tollgate.stores.rules.key_settings import PLAIN_SETTINGS
from tollgate.stores.rules.level_settings import LevelSettings
from tollgate.stores.rules.periods import PERIODS

_BAR: Final = 20
_SPENT, _HELD, _LEFT = "█", "▒", "░"
# Settings that keys share with teams and members (levels), by option.
_PLAIN: Final = {
    setting.offer.option: name
    for name, setting in PLAIN_SETTINGS.items()
    if name in LevelSettings.__struct_fields__
}
_REMOVABLE: Final = {"models": "models", "display-name": "display_name", **_PLAIN}


def level_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options for a level's settings, passed as `settings` in the API's form."""

    @click.option(
        "--limit",
        "limits",
        multiple=True,
        metavar="PERIOD=USD",
        help="Spending limit of all keys together, for day, week, month or total.",
    )
    @click.option("--model", "models", multiple=True, help="Glob of models that the keys may use.")
    @click.option("--rpm", type=int, help="Requests per minute of all keys together.")
    @click.option(
        "--burst", type=int, help="Requests at once after a pause; twice --rpm by default."
    )
    @click.option("--tpm", type=int, help="Tokens per minute of all keys together.")
    @click.option("--concurrency", type=int, help="Requests in flight at the same time.")
    @click.option("--tier", help="Tier in routing.yaml for keys without a tier.")
    @click.option("--guardrails", help="Guardrails that also judge these requests: secrets,harm.")
    @click.option("--prompt-policy", help="Where prompts may go: eu,no_training,no_retention.")
    @click.option("--display-name", metavar="NAME", help="Name to show to people.")
    @wraps(command)
    def called(*, limits: tuple[str, ...], models: tuple[str, ...], **arguments: Any) -> None:
        chosen = {
            name: arguments.pop(option.replace("-", "_"))
            for option, name in {**_PLAIN, "display-name": "display_name"}.items()
        }
        # An option that is not given is None or empty; zero is a value, which the API validates.
        settings = without_none(chosen)
        if models:
            settings["models"] = list(models)
        if limits:
            settings["limits"] = dict(split_pair(text, "--limit") for text in limits)
        command(settings=settings, **arguments)

    return called


def take_away(
    settings: dict[str, Any], without: tuple[str, ...], more: Mapping[str, str] = {}
) -> None:
    """Set each setting or period that `--no` names to null; `more` adds fields by argument."""
    removable = {**_REMOVABLE, **more}
    for name in without:
        if name in PERIODS:
            settings.setdefault("limits", {})[name] = None
        elif name in removable:
            settings[removable[name]] = None
        else:
            known = ", ".join([*PERIODS, *removable])
            raise click.UsageError(f"--no: {name!r} is not one of {known}.")


def explain_holds(level: Any) -> str:
    """Describe the generations that credit is held for; return "" if there are none."""
    holds = level.get("holds")
    if not holds or not holds["generations"]:
        return ""
    oldest = f"the oldest {holds['oldest']} since {holds['oldest_since']}"
    return f"{holds['generations']} generations, {oldest}"


def level_cells(level: Any) -> dict[str, str]:
    """Return the table cells that teams and members share."""
    limits = level["limits"]
    return {
        "id": level["id"],
        "name": level["display_name"] or "",
        "limits": ", ".join(f"{period} {exact(limit)}" for period, limit in limits.items()),
        "left": ", ".join(
            f"{period} {exact(remaining)}"
            for period, remaining in level["limits_remaining"].items()
        ),
        "held": exact(level["held"]),
        "holds": explain_holds(level),
        "models": "all" if level["models"] is None else ", ".join(level["models"]),
        "tier": level["tier"] or "",
        "rates": ", ".join(_explain_rates(level)),
        "prompt_policy": level.get("prompt_policy") or "",
        "guardrails": level.get("guardrails") or "",
        "created": level["created_at"],
    }


def draw_limits(level: Any, style: OutputStyle) -> None:
    """Print, on a terminal, a bar for each limit: spent, held, left, and when the limit resets."""
    if style != "auto" or not sys.stdout.isatty():
        return
    for period, limit in level["limits"].items():
        remaining, spent = (
            level["limits_remaining"].get(period),
            level["limits_usage"].get(period, 0),
        )
        if remaining is None:
            # The gateway may not apply a new limit yet.
            continue
        held = max(Decimal(limit) - Decimal(remaining) - Decimal(spent), Decimal(0))
        reset = level["limits_reset_at"][period]
        until = f", until {reset[5:16].replace('T', ' ')}" if reset else ""
        amounts = f"{_amount(spent)} spent, {_amount(held)} held"
        rest = f"{_amount(remaining)} of {_amount(limit)} left"
        click.echo(f"{period:<6}{_bar(spent, held, limit)}  {amounts}")
        click.echo(f"{'':<{6 + _BAR}}  {rest}{until}")


def draw_levels(key: Any, style: OutputStyle) -> None:
    """Print, on a terminal, the limits of a key's member and team, and the tightest limit."""
    if style != "auto" or not sys.stdout.isatty():
        return
    for level in key["levels"]:
        click.echo(f"{level['level']} {level['id']}")
        draw_limits(level, style)
    tightest = key["tightest"]
    whose = f"{tightest['level']} {tightest['id']}"
    click.echo(f"tightest: {tightest['kind']} of {whose}, {_amount(tightest['remaining'])} left")


def split_pair(text: str, option: str, names: tuple[str, ...] = ()) -> tuple[str, str]:
    """Return the name and value in `name=value`; raise UsageError for any other text, and for a
    name that is not one of `names`.
    """
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise click.UsageError(f"{option}: write {text!r} as name=value.")
    if names and name not in names:
        raise click.UsageError(f"{option}: {name!r} is not one of {', '.join(names)}.")
    return name, value


def _amount(usd: Any) -> str:
    """Return dollars; a remaining amount is negative if the last answer overshot the limit."""
    sign = "-" if Decimal(usd) < 0 else ""
    return f"{sign}{dollars(abs(Decimal(usd)), 2)}"


def _bar(spent: Any, held: Decimal, limit: Any) -> str:
    """Return a bar of fixed width; amounts above zero fill at least one character."""
    cells = [_cells(Decimal(amount), Decimal(limit)) for amount in (spent, held)]
    filled = (_SPENT * cells[0] + _HELD * cells[1])[:_BAR]
    return filled + _LEFT * (_BAR - len(filled))


def _cells(amount: Decimal, limit: Decimal) -> int:
    return max(round(amount / limit * _BAR), 1) if amount > 0 else 0


def _explain_rates(level: Any) -> Iterator[str]:
    for field, unit in (
        ("requests_per_minute", "requests/min"),
        ("burst", "at once"),
        ("tokens_per_minute", "tokens/min"),
        ("concurrency", "at a time"),
    ):
        if level[field] is not None:
            yield f"{level[field]} {unit}"
