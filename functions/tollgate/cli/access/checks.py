"""Checks for reasons not to apply access.yaml, before anything is changed."""

from collections import Counter
from collections.abc import Iterator

from tollgate.cli.access.access_file import (
    ACCESS_KINDS,
    ALERTS,
    KEYS,
    MEMBERS,
    TEAMS,
    WORKSPACE,
    AccessFile,
    SecretEntry,
    entries_of,
    stated_secrets,
)
from tollgate.cli.access.differences import AccessPlan, ObjectChange
from tollgate.cli.access.live import LiveAccess, LiveObject


def find_refusals(file: AccessFile, live: LiveAccess, plan: AccessPlan) -> Iterator[str]:
    """Yield a sentence for each reason."""
    if file.workspace.id != live.workspace_id:
        yield (
            f"The file is for the workspace {file.workspace.id}, but the key belongs to the "
            f"workspace {live.workspace_id}."
        )
        return
    yield from _unknown_levels(file, live)
    for kind in ACCESS_KINDS:
        for name in sorted((entries_of(file, kind) or {}).keys() & live.gone(kind)):
            yield f"The {kind.noun} {name} was removed, and its id is never used again."
    yield from _misused_secrets(file, plan)
    yield from _changed_roles(file, live)
    yield from _keys_of_members(file, live)
    yield from _lost_administrators(live, plan)
    for change in plan.changes:
        if change.kind is WORKSPACE and not live.operates:
            settings = ", ".join(setting.name for setting in change.settings)
            yield f"Only a key of the operator's workspace may change {settings} of a workspace."
        if change.stops and change.id in (live.own_key_id, live.own_member_id):
            yield f"The file stops the {change.kind.noun} {change.name}, which applies the file."


def _unknown_levels(file: AccessFile, live: LiveAccess) -> Iterator[str]:
    teams = (file.teams or {}).keys() | live.of(TEAMS).keys()
    members = (file.members or {}).keys() | live.of(MEMBERS).keys()
    for name, member in (file.members or {}).items():
        if member.team_id is not None and member.team_id not in teams:
            yield f"The member {name} is in the team {member.team_id}, which does not exist."
    for name, key in (file.keys or {}).items():
        team_id, member_id = getattr(key, "team_id", None), getattr(key, "member_id", None)
        if team_id is not None and team_id not in teams:
            yield f"The key {name} belongs to the team {team_id}, which does not exist."
        if member_id is not None and member_id not in members:
            yield f"The key {name} belongs to the member {member_id}, which does not exist."


def _misused_secrets(file: AccessFile, plan: AccessPlan) -> Iterator[str]:
    for secret, uses in Counter(stated_secrets(file)).items():
        if uses > 1:
            yield f"The secret {secret} is named {uses} times; each object needs its own."
    for change in plan.changes:
        if change.kind not in (KEYS, ALERTS) or change.id is not None:
            continue
        entry = (entries_of(file, change.kind) or {})[change.name]
        if isinstance(entry, SecretEntry) and entry.secret_name is None:
            yield (
                f"The {change.kind.noun} {change.name} is new: name a secret of Secrets Manager "
                "that gets its secret (secret_name), or create it by command first."
            )


def _changed_roles(file: AccessFile, live: LiveAccess) -> Iterator[str]:
    for name, entry in (file.keys or {}).items():
        found = live.of(KEYS).get(name)
        if found is not None and "role" in entry.stated and found["role"] != entry.role:
            yield f"The key {name} has the role {found['role']}, and a key's role never changes."


def _keys_of_members(file: AccessFile, live: LiveAccess) -> Iterator[str]:
    # Members create keys outside the file. If such a key has the name of an entry, it would get the
    # limits of that entry.
    for name, entry in (file.keys or {}).items():
        found = live.of(KEYS).get(name)
        if found is not None and found["member_id"] and "member_id" not in entry.stated:
            yield (
                f"The key {name} is a key of the member {found['member_id']}: state its member_id, "
                "or use another name."
            )


def _lost_administrators(live: LiveAccess, plan: AccessPlan) -> Iterator[str]:
    changes = {change.name: change for change in plan.changes if change.kind is MEMBERS}
    members = live.of(MEMBERS)
    before = {_role(member, None) for member in members.values()}
    after = {
        _role(members.get(name, {}), changes.get(name)) for name in members.keys() | changes.keys()
    }
    if "owner" in before and "owner" not in after:
        yield "The file leaves the workspace without an owner."
    elif "admin" in before and not {"owner", "admin"} & after:
        yield "The file leaves the workspace without an administrator."


def _role(member: LiveObject, change: ObjectChange | None) -> str | None:
    """Return a member's role after a change; None for a member that the change disables."""
    after = {**member, **({} if change is None else change.body)}
    return None if after.get("disabled") else str(after.get("role"))
