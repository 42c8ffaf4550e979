"""The mapping of identities to members, by the rules of the sign-in file."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from tollgate.core.errors import AccessError, ErrorCode
from tollgate.core.records.audit import Actor
from tollgate.sign_in.configuration import MemberRule, SignIn
from tollgate.sign_in.identity import Identity
from tollgate.stores.ports.people import Member, MemberStore
from tollgate.stores.rules.level_settings import MemberSettings, is_member_id

_DISPLAY_NAME_MAX = 100


class People:
    """Finds, creates and updates the members that identities sign in as."""

    def __init__(self, sign_in: SignIn, members: MemberStore) -> None:
        self._sign_in = sign_in
        self._members = members

    async def admit(self, identity: Identity, *, by: Actor) -> Member:
        """Return the member for an identity, with the role and team that its rule assigns.

        Raise AccessError(permission_denied) if no rule matches the identity, or if the member was
        removed.
        """
        rule = self._sign_in.rule_of(identity.claims)
        if rule is None:
            raise _refused(identity, "no rule of the gateway's sign-in file matches this identity")
        member = await self._members.find_by_subject(rule.workspace, identity.name)
        if member is None:
            member = await self._welcome(identity, rule, by)
        if member.removed_s is not None:
            raise _refused(identity, f"{member.id} was removed from workspace {rule.workspace}")
        if member.disabled:
            raise _refused(identity, f"{member.id} is disabled in workspace {rule.workspace}")
        return await self._follow(member, identity, rule, by)

    async def _welcome(self, identity: Identity, rule: MemberRule, by: Actor) -> Member:
        """Return a new or existing member for an identity that no member is linked to yet."""
        member_id = self._new_id(identity)
        existing = await self._members.get(rule.workspace, member_id)
        if existing is not None and existing.removed_s is not None:
            return existing
        if existing is None and not self._sign_in.creates_members:
            raise _refused(
                identity, f"there is no member {member_id}; an admin has to add the member"
            )
        if existing is None:
            member = await self._members.create(
                rule.workspace,
                member_id,
                MemberSettings(
                    role=rule.role,
                    team_id=rule.team,
                    email=_verified_email(identity.claims),
                    display_name=_display_name(identity.claims),
                ),
                subject=identity.name,
                by=by,
            )
        else:
            member = await self._members.link(rule.workspace, member_id, identity.name, by=by)
        # Another sign-in of the same person may have created or linked the member first.
        member = member or await self._members.find_by_subject(rule.workspace, identity.name)
        if member is None:
            raise _refused(identity, f"member {member_id} belongs to another identity")
        return member

    async def _follow(
        self, member: Member, identity: Identity, rule: MemberRule, by: Actor
    ) -> Member:
        """Return the member with the role and team that the rule assigns now."""
        team = member.team_id if rule.team is None else rule.team
        if (member.role, member.team_id) == (rule.role, team):
            return member
        changed = await self._members.change(
            rule.workspace,
            member.id,
            lambda settings: replace(settings, role=rule.role, team_id=team),
            by=by,
        )
        if changed is None:
            raise _refused(identity, f"{member.id} was removed from workspace {rule.workspace}")
        return changed

    def _new_id(self, identity: Identity) -> str:
        claim = self._sign_in.member_claim
        value = identity.claims.get(claim)
        if claim == "email":
            value = _verified_email(identity.claims)
        if not isinstance(value, str) or not is_member_id(value):
            raise _refused(identity, f"its claim {claim} is not a valid member id")
        return value


def _verified_email(claims: Mapping[str, Any]) -> str | None:
    address = claims.get("email")
    verified = claims.get("email_verified") is True and isinstance(address, str)
    return address if verified else None


def _display_name(claims: Mapping[str, Any]) -> str | None:
    name = claims.get("name")
    return name[:_DISPLAY_NAME_MAX] if isinstance(name, str) and name else None


def _refused(identity: Identity, reason: str) -> AccessError:
    return AccessError(
        ErrorCode.PERMISSION_DENIED, f"{identity.subject} may not sign in: {reason}."
    )
