"""The state of a workspace in a running gateway, for comparison with access.yaml."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from tollgate.cli.access.access_file import ALERTS, KEYS, MEMBERS, TEAMS, WORKSPACE, Kind
from tollgate.cli.gateway.http import Api, Query, Refused

# An object as the API returns it.
LiveObject: TypeAlias = Mapping[str, Any]
_FORBIDDEN: Final = 403
_AUDIT_PAGE: Final = 1_000
_AUDIT_PAGES_MAX: Final = 20


class LiveAccess(Struct, frozen=True, kw_only=True):
    """The objects of a workspace, and the rights of the caller."""

    workspace_id: str
    operates: bool
    """True if the caller belongs to the operator's workspace."""
    own_key_id: str
    own_member_id: str | None
    objects: Mapping[str, Mapping[str, LiveObject]]
    """Objects by section and name, without permanently deleted ones."""
    tombstones: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Ids that are never used again, by section."""

    def of(self, kind: Kind) -> Mapping[str, LiveObject]:
        """Return the objects of a kind by name."""
        return self.objects.get(kind.section, {})

    def gone(self, kind: Kind) -> frozenset[str]:
        """Return the ids of a kind that are never used again."""
        return self.tombstones.get(kind.section, frozenset())


def read_live(api: Api, *, alerts: bool) -> LiveAccess:
    """Return the state of the caller's workspace; only management keys may read alerts."""
    own = api.get("/key")["data"]
    workspace = api.get("/workspace")["data"]
    teams = list(api.pages("/teams", {"deleted": "true"}, "cursor"))
    members = list(api.pages("/members", {"removed": "true"}, "cursor"))
    webhooks = api.get("/webhooks")["data"] if alerts else []
    return LiveAccess(
        workspace_id=workspace["id"],
        operates=_operates(api, workspace["id"]),
        own_key_id=own["id"],
        own_member_id=own.get("member_id"),
        objects={
            TEAMS.section: {team["id"]: team for team in teams if team["deleted_at"] is None},
            MEMBERS.section: {it["id"]: it for it in members if it["removed_at"] is None},
            KEYS.section: {key["name"]: key for key in api.pages("/keys", {}, "cursor")},
            # If several webhooks have the same address, the file's entry refers to the oldest one.
            ALERTS.section: {webhook["url"]: webhook for webhook in reversed(webhooks)},
            WORKSPACE.section: {workspace["id"]: workspace},
        },
        tombstones={
            TEAMS.section: frozenset(it["id"] for it in teams if it["deleted_at"] is not None),
            MEMBERS.section: frozenset(it["id"] for it in members if it["removed_at"] is not None),
        },
    )


def read_authors(api: Api, workspace_id: str) -> Mapping[tuple[str, str], str]:
    """Return the author of each setting's last change, except changes by a file, keyed by object id
    and setting.

    Only entries of the last 30 days are read, and at most the latest 20,000.
    """
    authors: dict[tuple[str, str], str | None] = {}
    query: Query = {"workspace": workspace_id, "kind": "change", "limit": _AUDIT_PAGE}
    pages = api.read_pages("/audit", query, "cursor")
    for _, page in zip(range(_AUDIT_PAGES_MAX), pages, strict=False):
        for entry in page["data"]:
            for name in {*entry["before"], *entry["after"]}:
                place = (entry["target"], name.partition(".")[0])
                authors.setdefault(place, None if entry.get("commit") else _author(entry))
    return {place: author for place, author in authors.items() if author is not None}


def _author(entry: LiveObject) -> str:
    name = entry.get("actor_member_id") or entry["actor_name"] or entry["actor"]
    return f"{name} on {entry['created_at'][:10]}"


def _operates(api: Api, workspace_id: str) -> bool:
    try:
        api.get(f"/workspaces/{workspace_id}")
    except Refused as refused:
        if refused.status == _FORBIDDEN:
            return False
        raise
    return True
