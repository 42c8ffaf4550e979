"""The stores of members and sessions in memory, as far as sign-ins use them."""

from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec.structs import replace

from tollgate.core.audit import Actor
from tollgate.core.clock import Clock
from tollgate.core.errors import AccessError, ErrorCode, RequestError
from tollgate.core.principal import Principal
from tollgate.stores.people import Member, OpenedSession
from tollgate.stores.rules.level_settings import MemberSettings


@dataclass
class MemoryMembers:
    """Members by workspace and id."""

    members: dict[tuple[str, str], Member] = field(default_factory=dict)
    # Teams that were deleted, or never made.
    missing_teams: set[str] = field(default_factory=set)

    async def create(
        self,
        workspace_id: str,
        member_id: str,
        settings: MemberSettings,
        *,
        subject: str | None = None,
        by: Actor,
    ) -> Member | None:
        if (workspace_id, member_id) in self.members:
            return None
        self._check_team(settings)
        if subject and await self.find_by_subject(workspace_id, subject):
            return None
        chosen = {name: getattr(settings, name) for name in settings.__struct_fields__}
        made = Member(
            id=member_id, workspace_id=workspace_id, created_s=0, subject=subject, **chosen
        )
        self.members[workspace_id, member_id] = made
        return made

    async def get(self, workspace_id: str, member_id: str) -> Member | None:
        return self.members.get((workspace_id, member_id))

    async def find_by_subject(self, workspace_id: str, subject: str) -> Member | None:
        found = (it for (place, _), it in self.members.items() if place == workspace_id)
        return next((it for it in found if it.subject == subject), None)

    async def link(
        self, workspace_id: str, member_id: str, subject: str, *, by: Actor
    ) -> Member | None:
        member = self.members.get((workspace_id, member_id))
        if member is None or member.removed_s is not None or member.subject is not None:
            return None
        self.members[workspace_id, member_id] = replace(member, subject=subject)
        return self.members[workspace_id, member_id]

    async def change(
        self,
        workspace_id: str,
        member_id: str,
        edit: Callable[[MemberSettings], MemberSettings],
        *,
        by: Actor,
    ) -> Member | None:
        member = self.members.get((workspace_id, member_id))
        if member is None or member.removed_s is not None:
            return None
        self._check_team(edit(member))
        self.members[workspace_id, member_id] = edit(member)  # type: ignore[assignment]
        return self.members[workspace_id, member_id]

    def _check_team(self, settings: MemberSettings) -> None:
        if settings.team_id in self.missing_teams:
            raise RequestError(ErrorCode.NOT_FOUND, "There is no such team.", param="team_id")

    async def remove(self, workspace_id: str, member_id: str, *, by: Actor) -> bool | None:
        member = self.members[workspace_id, member_id]
        self.members[workspace_id, member_id] = replace(member, removed_s=1)
        return True


class MemorySessions:
    """Sessions, which are keys as well."""

    def __init__(self, members: MemoryMembers, clock: Clock) -> None:
        self._members = members
        self._clock = clock
        self.open_ones: dict[str, tuple[str, str, int]] = {}
        self._made = 0

    async def open(
        self, workspace_id: str, member_id: str, *, lifetime_s: int, by: Actor
    ) -> OpenedSession | None:
        member = await self._members.get(workspace_id, member_id)
        if member is None or member.removed_s is not None:
            return None
        self._made += 1
        secret = f"session-{self._made}"
        expires_s = int(self._clock.now_s()) + lifetime_s
        self.open_ones[secret] = (workspace_id, member_id, expires_s)
        return OpenedSession(secret=secret, expires_s=expires_s, key_id=f"key of {member_id}")

    async def close(self, secret: str, *, by: Actor) -> bool:
        return self.open_ones.pop(secret, None) is not None

    async def authenticate(self, secret: str) -> Principal:
        place = self.open_ones.get(secret)
        if place is None or place[2] <= self._clock.now_s():
            raise AccessError(ErrorCode.INVALID_API_KEY, "There is no such key.")
        member = await self._members.get(*place[:2])
        assert member is not None
        if member.removed_s is not None:
            raise AccessError(ErrorCode.INVALID_API_KEY, "There is no such key.")
        return Principal(
            key_id=f"key of {member.id}",
            workspace_id=member.workspace_id,
            role=member.role,
            label=member.id,
            team_id=member.team_id,
            member_id=member.id,
            session=True,
        )

    async def note_use(self, principal: Principal) -> None:
        """Note nothing."""
