"""The parts of a gateway that signs people in, over stores in memory and a scripted issuer."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from tests.memory.books import MemoryBooks
from tests.memory.keys import MemoryKeyStore
from tests.memory.login_codes import MemoryCodes
from tests.memory.people import MemoryMemberStore, MemorySessionStore
from tests.upstream.issuer import CLIENT_ID, ISSUER, ScriptedIssuer

from tollgate.core.ids import IdSource
from tollgate.core.records.audit import Actor
from tollgate.core.secret import CredentialPlace, SecretReference
from tollgate.sign_in.browser import Arrival, BrowserSignIn, Departure
from tollgate.sign_in.configuration import SignIn, read_sign_in
from tollgate.sign_in.grants import Grants, TokenPair
from tollgate.sign_in.issuer import Issuer
from tollgate.sign_in.people import People
from tollgate.stores.ports.people import Team

KEY_PREFIX = "sk-tg-"
PERSON = Actor(kind="process", id="sign-in")
PUBLIC_URL = "https://gateway.example/api"
RULES: list[dict[str, Any]] = [
    {"claims": {"groups": "admins"}, "workspace": "acme", "role": "admin"},
    {
        "claims": {"groups": "search", "email": "*@acme.example"},
        "workspace": "acme",
        "team": "search",
        "role": "developer",
    },
]
FILE: dict[str, Any] = {
    "public_url": PUBLIC_URL,
    "issuer": ISSUER,
    "client_id": CLIENT_ID,
    "rules": RULES,
    "managed_settings": [
        {"teams": ["search"], "settings": {"model": "acme/claude"}},
        {"roles": ["admin"], "settings": {"model": "acme/opus"}},
    ],
}


class MovedClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at_s = 1_800_000_000.0

    def now_s(self) -> float:
        return self.at_s

    def monotonic_s(self) -> float:
        return self.at_s

    async def sleep(self, delay_s: float) -> None:
        self.at_s += delay_s


class NoSecrets:
    """A store of secrets that has none."""

    async def read(self, reference: SecretReference) -> str | None:
        return None

    def place(self, reference: SecretReference) -> CredentialPlace:
        return CredentialPlace()


@dataclass
class House:
    """A gateway that signs people in."""

    clock: MovedClock
    upstream: ScriptedIssuer
    sign_in: SignIn
    issuer: Issuer
    books: MemoryBooks
    keys: MemoryKeyStore
    members: MemoryMemberStore
    sessions: MemorySessionStore
    codes: MemoryCodes
    people: People
    browser: BrowserSignIn
    grants: Grants


def add_team(books: MemoryBooks) -> None:
    """Add the team that the rules name."""
    books.teams["acme", "search"] = Team(id="search", workspace_id="acme", created_s=0)


def house(**changes: Any) -> House:
    """Return a gateway whose sign-in file has these changes."""
    clock = MovedClock()
    upstream = ScriptedIssuer(clock)
    sign_in = read_sign_in(msgspec.json.encode({**FILE, **changes}))
    issuer = Issuer(sign_in, upstream, NoSecrets(), clock=clock)
    books, ids, codes = MemoryBooks(), IdSource(clock), MemoryCodes(clock)
    add_team(books)
    keys = MemoryKeyStore(books, ids, clock, KEY_PREFIX)
    members = MemoryMemberStore(books, ids, clock)
    sessions = MemorySessionStore(books, ids, clock, keys, KEY_PREFIX)
    people = People(sign_in, members)
    grants = Grants(
        issuer, people, sessions, codes, session_s=sign_in.session_s, ids=ids, clock=clock
    )
    return House(
        clock=clock,
        upstream=upstream,
        sign_in=sign_in,
        issuer=issuer,
        books=books,
        keys=keys,
        members=members,
        sessions=sessions,
        codes=codes,
        people=people,
        browser=BrowserSignIn(sign_in, issuer, people, codes, ids=ids, clock=clock),
        grants=grants,
    )


def state_of(departure: Departure) -> str:
    """Return the state that a browser takes to the issuer."""
    return parse_qs(urlsplit(departure.url).query)["state"][0]


async def come_back(home: House, departure: Departure) -> Arrival:
    """Sign the person in at the issuer and bring the code back."""
    code = home.upstream.visit(departure.url)
    return await home.browser.arrive(
        state=state_of(departure), code=code, cookie=departure.cookie, by=PERSON
    )


async def sign_in_device(home: House) -> TokenPair:
    """Return the session of a program for which the person has signed in."""
    waiting = await home.grants.wait_for_person()
    await come_back(home, await home.browser.leave_for_device(waiting.user_code))
    return await home.grants.redeem_device(waiting.device_code, by=PERSON)


async def refresh(home: House, token: str | None) -> TokenPair:
    """Return the next session for a refresh token."""
    assert token is not None
    return await home.grants.refresh(token, by=PERSON)
