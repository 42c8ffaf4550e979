"""Keys in this process's memory."""

from collections.abc import Callable
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import asdict, replace

from tests.memory.books import MemoryBooks, MemoryKey
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import IdSource, is_id
from tollgate.core.money.amounts import nano_usd
from tollgate.core.pages import Page
from tollgate.core.principal import PLAYGROUND, LimitLevel, Principal
from tollgate.core.quotas import parse_quotas
from tollgate.core.records.audit import Actor
from tollgate.stores.keys.rows import settings_of, used_nano_usd
from tollgate.stores.keys.secret import LAST_LENGTH, is_well_formed, new_secret, secret_hash
from tollgate.stores.ports.administration import (
    KEYS_PAGE_MAX,
    CreatedKey,
    KeySummary,
    NewKey,
    OldSecret,
    WorkspaceSettings,
)
from tollgate.stores.ports.people import Team
from tollgate.stores.rules.account import RateState, key_refused
from tollgate.stores.rules.audit_entries import AuditedChange, SecretChange, new_entry
from tollgate.stores.rules.key_names import KeyName, refuse_taken_name
from tollgate.stores.rules.key_settings import KeySettings
from tollgate.stores.rules.periods import period_ends_s


def _nano_usd(amount: Decimal | None) -> int | None:
    return None if amount is None else nano_usd(amount)


class MemoryKeyStore:
    """Implements `stores.ports.administration.KeyStore`."""

    def __init__(self, books: MemoryBooks, ids: IdSource, clock: Clock, prefix: str) -> None:
        self._books = books
        self._ids = ids
        self._clock = clock
        self._prefix = prefix

    async def authenticate(self, secret: str) -> Principal:
        """Return the principal of a secret."""
        if not is_well_formed(secret, self._prefix):
            raise key_refused()
        digest, now_s = secret_hash(secret), self._clock.now_s()
        if secret in self._books.playgrounds:
            opener, expires_s = self._books.playgrounds[secret]
            if expires_s <= now_s:
                raise key_refused()
            return replace(await self.authenticate(opener), role=PLAYGROUND)
        session = self._books.sessions.get(secret)
        if session is not None:
            if session.expires_s <= now_s or session.key_id not in self._books.keys:
                raise key_refused()
            return self._principal(self._books.keys[session.key_id], session=True)
        for key in self._books.keys.values():
            old = key.old is not None and key.old[0] == digest and now_s < key.old[2]
            if digest == key.digest or old:
                break
        else:
            raise key_refused()
        return self._principal(key, old_secret=old)

    def _principal(
        self, key: MemoryKey, *, old_secret: bool = False, session: bool = False
    ) -> Principal:
        settings, workspace_id = key.settings, key.workspace_id
        expires_s = settings.expires_s
        if settings.disabled or (expires_s is not None and expires_s <= self._clock.now_s()):
            raise key_refused()
        of_workspace = self._books.workspace_settings.get(workspace_id, WorkspaceSettings())
        if not session and of_workspace.key_days is not None:
            made_s = key.old[3] if old_secret and key.old else key.secret_created_s
            if made_s + of_workspace.key_days * DAY_S <= self._clock.now_s():
                raise key_refused()
        member = self._books.members.get((workspace_id, settings.member_id or ""))
        team_id = settings.team_id or (member.team_id if member else None)
        team = self._books.teams.get((workspace_id, team_id or ""))
        is_refused = member is None or member.removed_s is not None or member.disabled
        if (settings.member_id and is_refused) or (
            team_id and (team is None or team.deleted_s is not None)
        ):
            raise key_refused()
        levels = [it for it in (member, team) if it is not None]
        tiers = [it.tier for it in (settings, *levels) if it.tier is not None]
        named = {"team": team_id, "member": settings.member_id}
        return Principal(
            key_id=key.id,
            workspace_id=workspace_id,
            role=member.role if session and member else key.role,
            label=settings.label,
            tier=tiers[0] if tiers else None,
            models=settings.models,
            labels={**settings.labels, **{name: it for name, it in named.items() if it}},
            old_secret=old_secret,
            content_days=settings.content_days,
            response_days=settings.response_days or of_workspace.response_days,
            usage_on=settings.usage_on or of_workspace.usage_on,
            allowed_ips=settings.allowed_ips,
            key_policy=settings.prompt_policy,
            key_guardrails=settings.guardrails,
            cost_max_nano_usd=_nano_usd(settings.max_cost),
            answer_sharing=settings.answer_cache,
            key_quotas=parse_quotas(settings.quotas),
            kept_address=settings.keep_address,
            warns_from_percent=settings.warn_at,
            session_nano_usd=_nano_usd(settings.session_budget),
            session_requests_max=settings.session_requests,
            workspace_ips=of_workspace.allowed_ips,
            team_id=team_id,
            member_id=settings.member_id,
            levels=tuple(
                LimitLevel(
                    level="team" if isinstance(it, Team) else "member",
                    id=it.id,
                    models=it.models,
                    prompt_policy=it.prompt_policy,
                    guardrails=it.guardrails,
                )
                for it in levels
            ),
            session=session,
        )

    async def find_key(self, workspace_id: str, key_id: str) -> Principal:
        """Return the principal of a key by its id."""
        key = self._key(workspace_id, key_id)
        if key is None:
            raise key_refused()
        return self._principal(key)

    async def note_use(self, principal: Principal) -> None:
        """Record the use of a key."""
        key = self._books.keys[principal.key_id]
        key.used_s[principal.old_secret] = int(self._clock.now_s())

    async def note_address(self, principal: Principal, address: str | None) -> None:
        """Record the address of a use, if the key stores it, at most every ten minutes."""
        key, now_s = self._books.keys[principal.key_id], int(self._clock.now_s())
        is_due = key.address is None or now_s >= key.address[1] + 600
        if principal.kept_address is not None and address is not None and is_due:
            key.address = (address, now_s)

    async def create(self, new: NewKey, *, by: Actor) -> CreatedKey:
        """Create a key."""
        refuse_taken_name(await self.names(new.workspace_id), new.label)
        self._books.check_belonging(new.workspace_id, team_id=new.team_id, member_id=new.member_id)
        secret = new_secret(self._prefix, self._ids.random_bytes)
        key = MemoryKey(
            id=self._ids.new_id(),
            workspace_id=new.workspace_id,
            role=new.role,
            settings=settings_of(new),
            last_four=secret[-LAST_LENGTH:],
            created_s=int(self._clock.now_s()),
            secret_created_s=int(self._clock.now_s()),
            rate=RateState.fresh(new.requests_per_minute, new.burst),
            digest=secret_hash(secret),
        )
        self._books.keys[key.id] = key
        self._note(by, "key.create", key, after=new)
        return CreatedKey(secret=secret, summary=self._summary(key))

    async def get(self, workspace_id: str, key_id: str) -> KeySummary | None:
        """Return a key with its spending; None if there is no such key."""
        key = self._key(workspace_id, key_id)
        return None if key is None else self._summary(key)

    async def list(
        self, workspace_id: str, *, after: str | None = None, limit: int = KEYS_PAGE_MAX
    ) -> Page[KeySummary]:
        """Return a page of a workspace's keys, oldest first."""
        if after is not None and not is_id(after):
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "The cursor is not valid.", param="cursor"
            )
        keys = [
            key
            for _, key in sorted(self._books.keys.items())
            if key.workspace_id == workspace_id and (after is None or key.id > after)
        ]
        page = keys[:limit]
        return Page(
            found=tuple(map(self._summary, page)), next=page[-1].id if len(keys) > limit else None
        )

    async def change(
        self,
        workspace_id: str,
        key_id: str,
        edit: Callable[[KeySettings], KeySettings],
        *,
        by: Actor,
    ) -> KeySummary | None:
        """Replace a key's settings by what `edit` returns for them."""
        key = self._key(workspace_id, key_id)
        if key is None or not key.digest:
            return None
        old, new = key.settings, edit(key.settings)
        if new.label != old.label:
            refuse_taken_name(await self.names(workspace_id), new.label)
        self._books.check_belonging(
            workspace_id,
            team_id=None if new.team_id == old.team_id else new.team_id,
            member_id=None if new.member_id == old.member_id else new.member_id,
        )
        if new != old:
            key.change(new)
            key.address = key.address if new.keep_address else None
            self._note(by, "key.change", key, before=old, after=new)
        return self._summary(key)

    async def rotate(
        self, workspace_id: str, key_id: str, *, grace_s: int, by: Actor
    ) -> CreatedKey | None:
        """Give a key a new secret; the previous one stays valid for `grace_s` seconds."""
        key = self._key(workspace_id, key_id)
        if key is None or not key.digest:
            return None
        secret = new_secret(self._prefix, self._ids.random_bytes)
        now_s = int(self._clock.now_s())
        key.old = (key.digest, key.last_four, now_s + grace_s, key.secret_created_s)
        key.secret_created_s = now_s
        key.digest, key.last_four = secret_hash(secret), secret[-LAST_LENGTH:]
        before = SecretChange(secret=f"…{key.old[1]}")
        after = SecretChange(secret=f"…{key.last_four}", old_secret_expires_s=key.old[2])
        self._note(by, "key.rotate", key, before=before, after=after)
        return CreatedKey(secret=secret, summary=self._summary(key))

    async def delete(self, workspace_id: str, key_id: str, *, by: Actor) -> bool | None:
        """Delete a key; return False while one of its generations still runs."""
        key = self._key(workspace_id, key_id)
        if key is None:
            return None
        if key.digest:
            self._note(by, "key.delete", key)
        key.digest, key.old = "", None
        key.settings = replace(key.settings, disabled=True)
        if key.holds:
            return False
        del self._books.keys[key_id]
        name = KeyName(key_id, key.settings.label, deleted=True)
        self._books.deleted_names.append((workspace_id, name))
        return True

    async def names(self, workspace_id: str) -> tuple[KeyName, ...]:
        """Return the name of every key that a workspace has or had, oldest first."""
        deleted = [name for place, name in self._books.deleted_names if place == workspace_id]
        living = [
            KeyName(key.id, key.settings.label)
            for key in self._books.keys.values()
            if key.workspace_id == workspace_id
        ]
        return tuple(sorted((*deleted, *living), key=lambda name: name.key_id))

    def _note(
        self,
        by: Actor,
        action: str,
        key: MemoryKey,
        *,
        before: Struct | None = None,
        after: Struct | None = None,
    ) -> None:
        change = AuditedChange(
            action=action,
            target=key.id,
            workspace_id=key.workspace_id,
            target_name=key.settings.label,
            before=before,
            after=after,
        )
        self._books.entries_of_audit.append(new_entry(change, by, ids=self._ids, clock=self._clock))

    def _key(self, workspace_id: str, key_id: str) -> MemoryKey | None:
        key = self._books.keys.get(key_id)
        return key if key is not None and key.workspace_id == workspace_id else None

    def _summary(self, key: MemoryKey) -> KeySummary:
        state, now_s = key.state(), self._clock.now_s()
        remaining = state.remaining_nano_usd(int(now_s))
        old = None
        if key.old is not None and now_s < key.old[2]:
            old = OldSecret(
                last_four=key.old[1], expires_s=key.old[2], last_used_s=key.used_s.get(True)
            )
        settings = key.settings
        return KeySummary(
            **asdict(settings),
            id=key.id,
            workspace_id=key.workspace_id,
            role=key.role,
            prefix=self._prefix,
            last_four=key.last_four,
            created_s=key.created_s,
            secret_created_s=key.secret_created_s,
            remaining_nano_usd={period: remaining[period] for period in settings.limits_nano_usd},
            resets_s={
                period: period_ends_s(period, int(now_s)) for period in settings.limits_nano_usd
            },
            used_nano_usd=used_nano_usd(
                state.limits_nano_usd,
                remaining,
                key.holds,
                int(now_s),
            ),
            spent_nano_usd=key.spent,
            held_nano_usd=sum(key.holds.values()),
            hold_ids=tuple(sorted(key.holds)),
            counters=dict(key.counters),
            read_s=int(now_s),
            last_used_s=key.used_s.get(False),
            last_address=key.address[0] if key.address else None,
            last_address_s=key.address[1] if key.address else None,
            old_secret=old,
        )
