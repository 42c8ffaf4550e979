"""Authentication in DynamoDB: principals, keyed by the hash of their secret and cached for five
seconds.
"""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import StoreUnavailable, refusing_when_unavailable
from tollgate.core.clock import Clock
from tollgate.core.limits import LimitOwner
from tollgate.core.principal import PLAYGROUND, Principal
from tollgate.stores.aws.decoding import read_number, read_text
from tollgate.stores.aws.items import AnyItem, KeyPointerItem, SecretItem, SessionItem
from tollgate.stores.aws.tables import (
    PUBLICATION_KEY,
    Tables,
    get_item,
    get_items,
    key_pointer_key,
    secret_key,
    try_update,
)
from tollgate.stores.keys.key_holds import update_state
from tollgate.stores.keys.principals import principal_of, read_opener, refused_from_s
from tollgate.stores.keys.secret import is_well_formed, secret_hash
from tollgate.stores.keys.session_expressions import KEY_ADDRESS
from tollgate.stores.keys.states import KeyStates
from tollgate.stores.routing.publications import PublicationStore
from tollgate.stores.rules.account import key_refused

_log = logging.getLogger(__name__)

# A disabled key is refused by every process within this time (contract C60).
FOUND_FOR_S: Final = 5.0
_ABSENT_FOR_S: Final = 1.0
_CACHED_MAX: Final = 10_000
_USE_NOTED_FOR_S: Final = 60.0
_ADDRESS_NOTED_FOR_S: Final = 600.0

# Attributes of a secret's item that refer to other items: a team, a member, or a session's key.
_LEADS_ABOVE: Final = (SecretItem.TEAM, SecretItem.MEMBER, SessionItem.KEY_HASH)

_Place = tuple[str, str]
_Name = TypeVar("_Name")
_Value = TypeVar("_Value")


class _Cached(Struct, frozen=True):
    """A cached result: the principal of a secret with its expiry, or None for a secret that is
    refused.
    """

    until_s: float
    """Monotonic second until which the result may be used."""
    principal: Principal | None
    expires_s: int | None = None
    """Unix second from which the secret is refused; None if there is no expiry."""


class DynamoKeyDirectory:
    """Implements `stores.ports.base.KeyDirectory`."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        states: KeyStates,
        *,
        clock: Clock,
        prefix: str,
        publications: PublicationStore,
    ) -> None:
        self._client = client
        self._tables = tables
        self._states = states
        self._clock = clock
        self.prefix = prefix
        """The beginning of every secret."""
        self._publications = publications
        self._cache: OrderedDict[str, _Cached] = OrderedDict()
        self._above: OrderedDict[str, tuple[Item, ...]] = OrderedDict()
        self._noted_s: OrderedDict[tuple[str, bool], float] = OrderedDict()
        self._addresses_noted_s: OrderedDict[str, float] = OrderedDict()

    async def authenticate(self, secret: str) -> Principal:
        """Return the principal of a secret, read at most five seconds ago."""
        if not is_well_formed(secret, self.prefix):
            raise key_refused()
        return await self._find(secret_hash(secret))

    async def find_key(self, workspace_id: str, key_id: str) -> Principal:
        """Return the principal of a key by its id, for work that the key began earlier."""
        with refusing_when_unavailable():
            key = key_pointer_key(workspace_id, key_id)
            pointer = await get_item(self._client, self._tables.core, key)
        if pointer is None or KeyPointerItem.HASH not in pointer:
            raise key_refused()
        return await self._find(read_text(pointer, KeyPointerItem.HASH))

    async def _find(self, digest: str) -> Principal:
        cached = await self._find_entry(digest)
        if cached.principal is None:
            raise key_refused()
        if cached.expires_s is not None and cached.expires_s <= self._clock.now_s():
            raise key_refused()
        return cached.principal

    async def _find_entry(self, digest: str) -> _Cached:
        cached = self._cache.get(digest)
        if cached is None or cached.until_s <= self._clock.monotonic_s():
            # The cache time starts when the read is sent, because a slow reply may show the state
            # as of that time.
            sent_s = self._clock.monotonic_s()
            with refusing_when_unavailable():
                cached = await self._read(digest, sent_s)
            _remember(self._cache, digest, cached)
        return cached

    async def _read(self, digest: str, sent_s: float) -> _Cached:
        """Read a secret's item, together with the team and member items that it needed last time.

        The same call reads the pointer to the live catalog, so the pointer is at most five seconds
        old as well.
        """
        own = secret_key(digest)
        keys = [own, PUBLICATION_KEY, *self._above.get(digest, ())]
        rows = await self._get(keys)
        self._publications.note(rows.get(_place(PUBLICATION_KEY)))
        row = rows.get(_place(own))
        if row is not None and SessionItem.OPENER in row:
            return await self._read_playground(row, sent_s)
        if row is not None and any(name in row for name in _LEADS_ABOVE):
            requested = {_place(key) for key in keys}
            return await self._read_above(digest, row, rows, requested=requested, sent_s=sent_s)
        return _cache_entry(row, sent_s)

    async def _read_playground(self, row: Item, sent_s: float) -> _Cached:
        """Return the principal of the secret that opened a playground, with the playground's role.

        The result is cached no longer than that of the opening secret, which may be older.
        """
        digest, ends_s = read_opener(row)
        opener = await self._find_entry(digest)
        if opener.principal is None:
            return _Cached(sent_s + _ABSENT_FOR_S, None)
        return _Cached(
            min(sent_s + FOUND_FOR_S, opener.until_s),
            replace(opener.principal, role=PLAYGROUND),
            ends_s if opener.expires_s is None else min(ends_s, opener.expires_s),
        )

    async def _read_above(
        self,
        digest: str,
        row: Item,
        rows: dict[_Place, Item],
        *,
        requested: set[_Place],
        sent_s: float,
    ) -> _Cached:
        """Read the missing member and team items of a key or session, and return the principal.

        `requested` has the keys of the items that this call has requested. `_above` cannot be used
        for this, because a concurrent read of the same secret may have added keys to it.
        """
        # Imported with the first session, or with the first key that belongs to a member or team.
        from tollgate.stores.people.authority import (
            add_levels,
            find_key_row,
            list_needed_rows,
            session_ends_s,
        )

        def find(key: Item) -> Item | None:
            return rows.get(_place(key))

        while missing := [
            key for key in list_needed_rows(row, find) if _place(key) not in requested
        ]:
            requested.update(map(_place, missing))
            rows.update(await self._get(missing))
        _remember(self._above, digest, tuple(list_needed_rows(row, find)))
        entry = _cache_entry(find_key_row(row, find), sent_s, ages=SessionItem.KEY_HASH not in row)
        if entry.principal is None:
            return entry
        principal = add_levels(entry.principal, row, find)
        if principal is None:
            return _Cached(sent_s + _ABSENT_FOR_S, None)
        ends = [end for end in (entry.expires_s, session_ends_s(row)) if end is not None]
        return _Cached(entry.until_s, principal, min(ends, default=None))

    async def _get(self, keys: Sequence[Item]) -> dict[_Place, Item]:
        rows = await get_items(self._client, self._tables.core, keys)
        return {_place(row): row for row in rows}

    async def note_use(self, principal: Principal) -> None:
        """Record a use, at most once a minute; a hold's own write records the use as well."""
        used = (principal.key_id, principal.old_secret)
        now_s = self._clock.monotonic_s()
        if now_s < self._noted_s.get(used, 0.0):
            return
        _remember(self._noted_s, used, now_s + _USE_NOTED_FOR_S)
        try:
            owner = LimitOwner(
                level="key", id=principal.key_id, workspace_id=principal.workspace_id
            )
            await self._states.note_use(owner, old_secret=principal.old_secret)
        except StoreUnavailable as unavailable:
            _log.warning("a use of key %s was not recorded: %s", principal.key_id, unavailable)

    async def note_address(self, principal: Principal, address: str | None) -> None:
        """Record the caller's address, at most every ten minutes, if the key stores addresses."""
        if principal.kept_address is None or address is None:
            return
        now_s = self._clock.monotonic_s()
        if now_s < self._addresses_noted_s.get(principal.key_id, 0.0):
            return
        _remember(self._addresses_noted_s, principal.key_id, now_s + _ADDRESS_NOTED_FOR_S)
        owner = LimitOwner(level="key", id=principal.key_id, workspace_id=principal.workspace_id)
        values = {":ad": string(address), ":second": number(int(self._clock.now_s()))}
        write = update_state(KEY_ADDRESS, self._tables.ledger, owner, names={}, values=values)
        try:
            await try_update(self._client, write)
        except StoreUnavailable as unavailable:
            _log.warning("an address of key %s was not stored: %s", principal.key_id, unavailable)

    def forget(self, *digests: str) -> None:
        """Remove the secrets with these hashes from the cache, because their items have changed."""
        for digest in digests:
            self._cache.pop(digest, None)


def _place(item: Item) -> _Place:
    return read_text(item, AnyItem.PARTITION), read_text(item, AnyItem.SORT)


def _cache_entry(row: Item | None, sent_s: float, *, ages: bool = True) -> _Cached:
    if row is None or read_number(row, SecretItem.ENABLED) != 1:
        return _Cached(sent_s + _ABSENT_FOR_S, None)
    return _Cached(sent_s + FOUND_FOR_S, principal_of(row), refused_from_s(row, ages=ages))


def _remember(cache: OrderedDict[_Name, _Value], name: _Name, value: _Value) -> None:
    cache[name] = value
    cache.move_to_end(name)
    if len(cache) > _CACHED_MAX:
        cache.popitem(last=False)
