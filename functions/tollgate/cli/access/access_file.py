"""Schema of access.yaml: the people, keys, alerts and budget of a workspace.

The settings are taken from the API's bodies, so their names and bounds are defined only there.
`python -m tollgate.cli.access.access_file > infra/schema/access.v1.json` writes the JSON Schema
that editors use to check and complete the file.
"""

import sys
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from msgspec import Struct
from pydantic import Field, model_validator

from tollgate.core.principal import KeyRole
from tollgate.routing.file.document import read_document
from tollgate.routing.file.problems import InvalidRouting
from tollgate.routing.file.validate import validate
from tollgate.routing.routing_file import json_schema_text
from tollgate.web.keys.key_shapes import KeySettingsBody, KeyText
from tollgate.web.money.credit_shapes import WorkspaceId
from tollgate.web.money.workspace_routes import WorkspaceSettingsBody
from tollgate.web.people.level_shapes import LevelBody
from tollgate.web.people.people_shapes import MemberBody, MemberId, TeamId
from tollgate.web.shapes import Body
from tollgate.web.webhooks.webhook_routes import WebhookAddress, WebhookSettingsBody

Unlisted = Literal["keep", "disable"]
# Fields of an entry that are not settings of the object.
_ABOUT_ENTRY: Final = frozenset({"console", "secret_name", "id"})


class AccessEntry(Body):
    """The settings of an object; the file controls each setting that the entry has."""

    console: dict[str, date] = Field(
        default_factory=dict,
        description="last day (UTC) on which a setting that was changed elsewhere, such as in the "
        "console, stays as it is, by setting",
    )

    @property
    def stated(self) -> frozenset[str]:
        """The settings that the entry has."""
        return frozenset(self.model_fields_set - _ABOUT_ENTRY)

    @model_validator(mode="after")
    def _check_console(self) -> Self:
        unknown = sorted(self.console.keys() - self.stated)
        if unknown:
            raise ValueError(f"console names {unknown[0]}, which this entry does not state")
        return self


class SecretEntry(AccessEntry):
    """The settings of an object that has a secret."""

    secret_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9/_+=.@-]{1,512}$")] | None = Field(
        None,
        description="secret of Secrets Manager that gets the secret of a new object, or of one "
        "that was never used; needed only to create the object",
    )


class WorkspaceEntry(WorkspaceSettingsBody, AccessEntry):
    """The workspace, with its monthly budget; only the operator changes its settings."""

    id: WorkspaceId = Field(description="the workspace of the key that applies the file")


class TeamEntry(LevelBody, AccessEntry):
    """The settings of a team."""


class MemberEntry(MemberBody, AccessEntry):
    """The settings of a member."""


class KeyEntry(KeySettingsBody, SecretEntry):
    """The settings of a key."""

    role: KeyRole = Field("inference", description="never changes")


class AlertEntry(WebhookSettingsBody, SecretEntry):
    """The settings of a webhook, by its address."""

    @model_validator(mode="after")
    def _refuse_null(self) -> Self:
        for name in sorted(self.stated):
            if getattr(self, name) is None:
                raise ValueError(f"{name} cannot be null")
        return self


class UnlistedSection(Body):
    """The treatment of live objects that a section of the file does not list."""

    members: Unlisted = "keep"
    keys: Annotated[Unlisted, Field(description="keys of members are left unchanged")] = "keep"


class AccessFile(Body):
    """Teams, members, keys, alerts and the budget of one workspace.

    Objects of a section that is left out are not compared.
    """

    version: Literal[1]
    workspace: WorkspaceEntry
    teams: dict[TeamId, TeamEntry] | None = Field(None, description="teams by id")
    members: dict[MemberId, MemberEntry] | None = Field(None, description="members by id")
    keys: dict[KeyText, KeyEntry] | None = Field(None, description="keys by name")
    alerts: dict[WebhookAddress, AlertEntry] | None = Field(
        None, description="webhooks by address; `budget.*` are the alerts of the budget"
    )
    unlisted: UnlistedSection = UnlistedSection()


class Kind(Struct, frozen=True, kw_only=True):
    """A kind of object in the file."""

    section: str
    noun: str
    path: str
    """Path of the objects in the API."""
    identity: str
    """Field of the object that is its name in the file."""
    entry: type[AccessEntry]
    stops_by: tuple[str, bool] | None = None
    """The setting, and its value, that disable an object."""
    used_at: str | None = None
    """Field with the time at which the secret was last used."""


TEAMS: Final = Kind(section="teams", noun="team", path="/teams", identity="id", entry=TeamEntry)
MEMBERS: Final = Kind(
    section="members",
    noun="member",
    path="/members",
    identity="id",
    entry=MemberEntry,
    stops_by=("disabled", True),
)
KEYS: Final = Kind(
    section="keys",
    noun="key",
    path="/keys",
    identity="name",
    entry=KeyEntry,
    stops_by=("disabled", True),
    used_at="last_used_at",
)
ALERTS: Final = Kind(
    section="alerts",
    noun="alert",
    path="/webhooks",
    identity="url",
    entry=AlertEntry,
    stops_by=("enabled", False),
    used_at="delivered_at",
)
WORKSPACE: Final = Kind(
    section="workspace",
    noun="workspace",
    path="/workspaces",
    identity="id",
    entry=WorkspaceEntry,
)
# `apply` uses this order, because keys need their members, and members need their teams.
ACCESS_KINDS: Final = (TEAMS, MEMBERS, KEYS, ALERTS, WORKSPACE)


def entries_of(file: AccessFile, kind: Kind) -> Mapping[str, AccessEntry] | None:
    """Return the entries of a kind by name, or None if the file leaves the section out."""
    if kind is WORKSPACE:
        return {file.workspace.id: file.workspace}
    found: Mapping[str, AccessEntry] | None = getattr(file, kind.section)
    return found


def stated_secrets(file: AccessFile) -> Iterator[str]:
    """Yield the names of secrets in a file, with repetitions."""
    for kind in ACCESS_KINDS:
        for entry in (entries_of(file, kind) or {}).values():
            if isinstance(entry, SecretEntry) and entry.secret_name is not None:
                yield entry.secret_name


def read_access(path: Path) -> AccessFile:
    """Return the content of a file; raise InvalidRouting with all its errors if there are any."""
    document = read_document(path, path.as_posix())
    file, found = validate(document, AccessFile, strict=False)
    problems = [*document.problems, *found]
    if file is None or problems:
        raise InvalidRouting(problems)
    return file


if __name__ == "__main__":
    sys.stdout.write(json_schema_text(AccessFile))
