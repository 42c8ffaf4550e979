"""Reader and writer of the stages in samconfig.toml."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

ALARM_EMAIL: Final = "AlarmEmail"
TABLE_PROTECTION: Final = "TableDeletionProtection"
READERS_PARAMETER: Final = "ReaderReservedConcurrency"
# The template reserves 20 environments for the reader. Lambda refuses reservations that leave fewer
# than 100 to other functions, and a new account has 10 in all.
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html (2026-11-27)
READERS_UNRESERVED_MIN: Final = 120
# Values that match need no escaping in TOML strings or in SAM's parameter overrides.
_REGION: Final = re.compile(r"[a-z]{2}(?:-[a-z]+)+-[0-9]")
_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)


class InvalidAnswer(ValueError):
    """Raised for an invalid region, address or stage."""


class Stage(Struct, frozen=True, kw_only=True):
    """A stage in samconfig.toml."""

    name: str
    stack: str
    region: str | None
    """None before the first deploy."""
    overrides: tuple[str, ...] | None
    """Parameters in the form of SAM's command line; None if the stage has no parameters."""

    @property
    def states_protection(self) -> bool:
        """True if the stage's parameters set the protection of its tables."""
        return any(TABLE_PROTECTION in override for override in self.overrides or ())

    @property
    def states_readers(self) -> bool:
        """True if the stage's parameters set the reader's concurrency."""
        return any(READERS_PARAMETER in override for override in self.overrides or ())


def read_stage(text: str, name: str) -> Stage:
    """Return a stage by name; raise InvalidAnswer if samconfig.toml has no such stage."""
    stages = tomllib.loads(text)
    try:
        deploy: Mapping[str, object] = stages[name]["deploy"]["parameters"]
        stack = deploy["stack_name"]
    except (KeyError, TypeError) as missing:
        raise InvalidAnswer(
            f"samconfig.toml has no stage {name!r}: copy the sections of `default`"
        ) from missing
    region = deploy.get("region")
    overrides = deploy.get("parameter_overrides")
    return Stage(
        name=name,
        stack=str(stack),
        region=str(region) if region else None,
        overrides=None if overrides is None else tuple(_override_words(overrides)),
    )


def find_region(text: str, stack: str) -> str | None:
    """Return the region of the stage with a stack; None if samconfig.toml states none."""
    for name in tomllib.loads(text):
        try:
            stage = read_stage(text, name)
        except InvalidAnswer:
            continue
        if stage.stack == stack:
            return stage.region
    return None


def _override_words(overrides: object) -> Iterator[str]:
    """Yield parameters in the form of SAM's command line, from a string, table or list."""
    match overrides:
        case list():
            for each in overrides:
                yield from _override_words(each)
        case {"$include": included, **others}:
            yield from _override_words(included)
            yield from _override_words(others)
        case dict():
            for name, value in overrides.items():
                # SAM joins the values of a list with commas.
                text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
                escaped = text.replace('"', '\\"')
                yield f'{name}="{escaped}"'
        case _:
            yield str(overrides)


def keep_answers(text: str, stage: Stage, region: str, email: str) -> str:
    """Return samconfig.toml with a region and an alarm address added to a stage.

    Raises InvalidAnswer for an address if the stage already has parameters.
    """
    if email and stage.overrides is not None:
        raise InvalidAnswer(
            f"stage {stage.name} states parameter_overrides: add {ALARM_EMAIL}={email} there"
        )
    region_line = [f'region = "{region}"']
    overrides = [f'parameter_overrides = "{ALARM_EMAIL}={email}"'] if email else []
    text = _insert(text, f"[{stage.name}.deploy.parameters]", [*region_line, *overrides])
    return _insert(text, f"[{stage.name}.delete.parameters]", region_line)


def _insert(text: str, header: str, lines: list[str]) -> str:
    """Return the text with lines inserted after a table header, which is added if missing."""
    before, found, after = text.partition(f"{header}\n")
    if not found:
        return f"{text}\n{header}\n" + "".join(f"{line}\n" for line in lines)
    return before + found + "".join(f"{line}\n" for line in lines) + after


def parse_region(text: str) -> str:
    """Return the name of a region; raise InvalidAnswer if the text is not a region name."""
    if not _REGION.fullmatch(text.strip()):
        raise InvalidAnswer(f"{text!r} is not a region, such as us-east-1")
    return text.strip()


def parse_email(text: str) -> str:
    """Return an e-mail address or ""; raise InvalidAnswer for any other text."""
    if text.strip() and not _EMAIL.fullmatch(text.strip()):
        raise InvalidAnswer(f"{text!r} is not an e-mail address")
    return text.strip()
