"""The stages of samconfig.toml: reading a stage, and storing the answers for it."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

ALARM_EMAIL: Final = "AlarmEmail"
TABLE_PROTECTION: Final = "TableDeletionProtection"
READERS: Final = "ReaderReservedConcurrency"
# The template reserves 20 environments for the reader. Lambda refuses reservations that leave fewer
# than 100 to other functions, and a new account has 10 in all.
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html (2026-11-27)
READERS_UNRESERVED_MIN: Final = 120
# These characters need no escape in TOML strings, and form one word of SAM's parameter overrides.
_REGION: Final = re.compile(r"[a-z]{2}(?:-[a-z]+)+-[0-9]")
_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)


class InvalidAnswer(ValueError):
    """An invalid region, address or stage."""


class Stage(Struct, frozen=True, kw_only=True):
    """A stage in samconfig.toml; `region` is None until its first deploy.

    `overrides` are its parameters in SAM's own form, or None if it states none.
    """

    name: str
    stack: str
    region: str | None
    overrides: tuple[str, ...] | None

    @property
    def states_protection(self) -> bool:
        """Return whether the stage itself states the protection of its tables."""
        return any(TABLE_PROTECTION in override for override in self.overrides or ())

    @property
    def states_readers(self) -> bool:
        """Return whether the stage itself states the reader's concurrency."""
        return any(READERS in override for override in self.overrides or ())


def read_stage(text: str, name: str) -> Stage:
    """Return a stage by name; raise InvalidAnswer if samconfig.toml lacks it."""
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


def _override_words(stated: object) -> Iterator[str]:
    """Yield parameters in the form of SAM's command line, from a text, a table or a list."""
    match stated:
        case list():
            for each in stated:
                yield from _override_words(each)
        case {"$include": included, **others}:
            yield from _override_words(included)
            yield from _override_words(others)
        case dict():
            for name, value in stated.items():
                # SAM joins the values of a list with commas.
                text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
                escaped = text.replace('"', '\\"')
                yield f'{name}="{escaped}"'
        case _:
            yield str(stated)


def keep_answers(text: str, stage: Stage, region: str, email: str) -> str:
    """Return samconfig.toml with a stage's region and alarm address; the rest stays as it is.

    Raises InvalidAnswer for an address if the stage states parameters already.
    """
    if email and stage.overrides is not None:
        raise InvalidAnswer(
            f"stage {stage.name} states parameter_overrides: add {ALARM_EMAIL}={email} there"
        )
    kept = [f'region = "{region}"']
    overrides = [f'parameter_overrides = "{ALARM_EMAIL}={email}"'] if email else []
    text = _insert(text, f"[{stage.name}.deploy.parameters]", [*kept, *overrides])
    return _insert(text, f"[{stage.name}.delete.parameters]", kept)


def _insert(text: str, header: str, lines: list[str]) -> str:
    """Return the text with lines after the header of a table, which is added if absent."""
    before, found, after = text.partition(f"{header}\n")
    if not found:
        return f"{text}\n{header}\n" + "".join(f"{line}\n" for line in lines)
    return before + found + "".join(f"{line}\n" for line in lines) + after


def parse_region(text: str) -> str:
    """Return the name of a region; raise InvalidAnswer if the text does not look like one."""
    if not _REGION.fullmatch(text.strip()):
        raise InvalidAnswer(f"{text!r} is not a region: one is us-east-1")
    return text.strip()


def parse_email(text: str) -> str:
    """Return an address, or "" for nobody; raise InvalidAnswer for anything else."""
    if text.strip() and not _EMAIL.fullmatch(text.strip()):
        raise InvalidAnswer(f"{text!r} is not an e-mail address")
    return text.strip()
