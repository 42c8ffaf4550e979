"""Conversion of teams, users and virtual keys of LiteLLM to commands that create them here.

The columns are those of `LiteLLM_TeamTable`, `LiteLLM_UserTable` and `LiteLLM_VerificationToken` in
`litellm/proxy/schema.prisma` of litellm 1.109.1, which `/team/list`, `/user/list` and `/key/list`
also return. LiteLLM stores only hashes of keys, so each key gets a new secret.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, TypeAlias

from pydantic_core import from_json

from tollgate.cli.catalog.litellm_config import ImportNote
from tollgate.cli.catalog.litellm_settings import convert_period

_Row: TypeAlias = Mapping[str, Any]
_LISTS: Final = ("teams", "users", "keys", "data")
_NUMBERS: Final = {
    "rpm_limit": "--rpm",
    "tpm_limit": "--tpm",
    "max_parallel_requests": "--concurrency",
}
_ROLES: Final = {
    "proxy_admin": "admin",
    "proxy_admin_viewer": "viewer",
    "internal_user": "developer",
    "internal_user_viewer": "viewer",
}
# Names that LiteLLM reads as "no further restriction".
_ALL_MODELS: Final = frozenset({"*", "all-proxy-models", "all-team-models"})
# Columns that restrict a caller and have no counterpart.
_RESTRICTIONS: Final = (
    *("allowed_routes", "budget_limits", "model_max_budget", "object_permission_id"),
    *("organization_id", "policies", "tpd_limit"),
)
_EMPTY: Final = (None, "", "{}", "[]", "null", 0, False)
# The team of the UI's own sessions, and the user of the master key.
_DASHBOARD: Final = "litellm-dashboard"
_MASTER: Final = "default_user_id"
_NAME_LENGTH: Final = 100
_FILE_BYTES_MAX: Final = 64_000_000


class NotAnExport(ValueError):
    """Raised for a file that is neither JSON nor CSV with rows."""


def read_export(path: Path) -> list[_Row]:
    """Return the rows of a reply from LiteLLM's API or of a CSV file."""
    try:
        raw = path.read_bytes()
        if len(raw) > _FILE_BYTES_MAX:
            raise NotAnExport(f"{path.as_posix()} is larger than {_FILE_BYTES_MAX} bytes")
        if raw.lstrip()[:1] not in (b"[", b"{"):
            return list(csv.DictReader(io.StringIO(raw.decode("utf-8-sig"))))
        content = from_json(raw)
    except (OSError, ValueError) as unreadable:
        raise NotAnExport(f"{path.as_posix()} cannot be read: {unreadable}") from unreadable
    if isinstance(content, dict):
        content = next((content[name] for name in _LISTS if name in content), None)
    if not isinstance(content, list):
        raise NotAnExport(f"{path.as_posix()} has no list of teams, users or keys")
    return [each for each in content if isinstance(each, dict)]


class PeopleImport:
    """A conversion of teams, users and keys, with notes."""

    def __init__(self, now: datetime) -> None:
        self.notes: list[ImportNote] = []
        self._now = now
        self._teams: dict[str, str] = {}
        self._members: dict[str, str] = {}

    def teams(self, rows: Sequence[_Row]) -> Iterator[list[str]]:
        """Yield a command for each team."""
        for row in rows:
            source = _text(row.get("team_id"))
            name = _text(row.get("team_alias")) or source
            where = f"team {name}"
            if not source or _is_true(row.get("blocked")):
                self._note(where, "is blocked or has no id: not created")
                continue
            used = self._teams.values()
            self._teams[source] = slug = _id(source.lower(), r"[^a-z0-9._-]+", 64, set(used))
            options = ["--display-name", name[:_NAME_LENGTH], *self._limits(row, where)]
            yield ["tollgate", "teams", "create", slug, *options]

    def members(self, rows: Sequence[_Row]) -> Iterator[list[str]]:
        """Yield a command for each user."""
        for row in rows:
            source = _text(row.get("user_id"))
            where = f"user {source}"
            role = _ROLES.get(_text(row.get("user_role")) or "internal_user")
            if not source or role is None:
                self._note(where, "has no id or another role: not created")
                continue
            used = self._members.values()
            self._members[source] = member = _id(source, r"[^A-Za-z0-9.@+_-]+", 128, set(used))
            options = ["--role", role]
            if email := _text(row.get("user_email")):
                options += ["--email", email]
            teams = _texts(row.get("teams"))
            if len(teams) > 1:
                text = f"is in {len(teams)} teams: only the first is the member's"
                self._note(where, text, is_loss=True)
            if teams and teams[0] in self._teams:
                options += ["--team", self._teams[teams[0]]]
            elif teams:
                text = "its team was not created: limits there do not apply"
                self._note(where, text, is_loss=True)
            yield ["tollgate", "members", "create", member, *options, *self._limits(row, where)]

    def keys(self, rows: Sequence[_Row]) -> Iterator[list[str]]:
        """Yield a command for each key that may still be used."""
        for row in rows:
            name = _text(row.get("key_alias")) or _text(row.get("key_name")) or "unnamed"
            where = f"key {name}"
            expires = _moment(row.get("expires"))
            if _text(row.get("team_id")) == _DASHBOARD:
                continue
            if _is_true(row.get("blocked")) or (expires is not None and expires <= self._now):
                self._note(where, "is blocked or has expired: not created")
                continue
            levels = {
                "--team": (_text(row.get("team_id")), self._teams),
                "--member": (_text(row.get("user_id")).removeprefix(_MASTER), self._members),
            }
            unknown = [
                option for option, (source, known) in levels.items() if source not in ("", *known)
            ]
            if unknown:
                # Without its team or member, the key would escape their limits.
                level = unknown[0].removeprefix("--")
                self._note(where, f"its {level} was not created: not created", is_loss=True)
                continue
            options = [
                text
                for option, (source, known) in levels.items()
                if source
                for text in (option, known[source])
            ]
            if expires is not None:
                options += ["--expires", expires.strftime("%Y-%m-%dT%H:%M:%SZ")]
            if not row.get("rpm_limit"):
                self._note(where, "has no rpm_limit: a new key has 60 a minute", is_loss=True)
            yield [
                "tollgate",
                "keys",
                "create",
                *options,
                *self._limits(row, where),
                "--",
                name[:_NAME_LENGTH],
            ]

    def _note(self, where: str, text: str, *, is_loss: bool = False) -> None:
        self.notes.append(ImportNote(where=where, text=text, is_loss=is_loss))

    def _limits(self, row: _Row, where: str) -> Iterator[str]:
        """Yield the options for budget, rates and models."""
        budget = _amount(row.get("max_budget"))
        if budget is not None:
            period = convert_period(row.get("budget_duration"), where, self.notes)
            yield from ("--limit", f"{period}={budget:f}")
        for column, option in _NUMBERS.items():
            number = _amount(row.get(column))
            if number:
                yield from (option, f"{number:f}")
        models = _texts(row.get("models"))
        if _ALL_MODELS.isdisjoint(models):
            for model in models:
                yield from ("--model", model)
        for column in _RESTRICTIONS:
            if row.get(column) not in (*_EMPTY, [], {}):
                self._note(where, f"its {column} has no counterpart", is_loss=True)


def _id(source: str, forbidden: str, length: int, used: set[str]) -> str:
    """Return an unused id with the allowed characters of a source's id."""
    base = re.sub(forbidden, "-", source).strip("-._@+")[:length] or "unnamed"
    taken = [base, *(f"{base[: length - 6]}-{each}" for each in range(2, len(used) + 3))]
    return next(each for each in taken if each not in used)


def _text(value: object) -> str:
    """Return a string without the control characters that a terminal obeys; "" for other values."""
    if not isinstance(value, str):
        return ""
    return "".join(each if each.isprintable() else "?" for each in value.strip())


def _texts(value: object) -> list[str]:
    """Return the strings of a list, of a PostgreSQL array, or of a single string."""
    if isinstance(value, str):
        cell = value.strip()
        if cell.startswith("["):
            return _texts(from_json(cell))
        if cell.startswith("{") and cell.endswith("}"):
            [row] = list(csv.reader([cell[1:-1]])) or [[]]
            return [_text(each) for each in row if each]
        return [_text(cell)] if cell else []
    return [_text(each) for each in value if _text(each)] if isinstance(value, list) else []


def _amount(value: object) -> Decimal | None:
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and amount >= 0 else None


def _is_true(value: object) -> bool:
    return value is True or (isinstance(value, str) and value.lower() in ("t", "true"))


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(_text(value))
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
