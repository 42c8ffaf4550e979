"""A scripted issuer of identities: it signs what a test wants, and answers as issuers do."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
from joserfc import jwt
from joserfc.jwk import Key, RSAKey

from tollgate.core.clock import Clock
from tollgate.sign_in.codes import challenge_of
from tollgate.sign_in.issuer import IssuerReply, IssuerUnavailable

ISSUER = "https://login.example/realms/acme"
CLIENT_ID = "tollgate"
ANA = {
    "sub": "u-1",
    "email": "ana@acme.example",
    "email_verified": True,
    "name": "Ana",
    "groups": ["search"],
}
# Making one takes a tenth of a second.
FIRST_KEY = RSAKey.generate_key(2048, {"kid": "first"})
SECOND_KEY = RSAKey.generate_key(2048, {"kid": "second"})


class ScriptedIssuer:
    """Answers discovery, keys and tokens; each part can be changed by a test."""

    def __init__(self, clock: Clock, url: str = ISSUER) -> None:
        self._clock = clock
        self.keys: list[Key] = [FIRST_KEY]
        self.signs_with: Key = FIRST_KEY
        self.person: dict[str, Any] = dict(ANA)
        self.fetched: list[str] = []
        self.changes: dict[str, Any] = {}
        self.refuses: str | None = None
        self.is_down = False
        self.refreshed: list[str] = []
        self.asked, self.answers = asyncio.Event(), asyncio.Event()
        self.answers.set()
        self.key_answers = asyncio.Event()
        self.key_answers.set()
        self.gives_refresh_token = True
        self.repeats_identity = True
        self.refresh_tokens: list[str] = []
        # True ends a sign-in at the second use of a refresh token.
        self.rotates = False
        self.reused: list[str] = []
        self.metadata: dict[str, Any] = {}
        self.move_to(url)
        self._codes: dict[str, dict[str, str]] = {}

    def move_to(self, url: str) -> None:
        """Be the issuer of this address."""
        self.url = url
        self.metadata = {
            "issuer": url,
            "authorization_endpoint": f"{url}/auth",
            "token_endpoint": f"{url}/token",
            "jwks_uri": f"{url}/keys",
        }

    def hold_back(self) -> None:
        """Give no token until `answers` is set; `asked` is set by the next question for one."""
        self.asked.clear()
        self.answers.clear()

    def token(self, *, key: Key | None = None, header: Any = None, **changes: Any) -> str:
        """Return a token of the person; a claim of None is left out."""
        now_s = int(self._clock.now_s())
        claims = {"iss": self.url, "aud": CLIENT_ID, "iat": now_s, "exp": now_s + 300}
        claims |= self.person | self.changes | changes
        signer = key or self.signs_with
        head = {"alg": "RS256", "kid": signer.kid, **(header or {})}
        present = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(head, present, signer)

    def visit(self, url: str) -> str:
        """Sign the person in at an authorization URL; return the code that it leads to."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert url.startswith(f"{self.url}/auth?")
        assert query["code_challenge_method"] == "S256"
        code = f"code-{len(self._codes)}"
        self._codes[code] = query
        return code

    async def __call__(
        self, url: str, *, form: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> IssuerReply:
        self.fetched.append(url)
        if self.is_down:
            raise IssuerUnavailable("TimeoutError")
        match url.removeprefix(self.url):
            case "/.well-known/openid-configuration":
                return _reply(self.metadata)
            case "/keys":
                await self.key_answers.wait()
                if self.is_down:
                    raise IssuerUnavailable("TimeoutError")
                return _reply({"keys": [key.as_dict(private=False) for key in self.keys]})
            case "/token":
                assert form is not None
                fields = {n: v[0] for n, v in parse_qs(form.decode()).items()}
                self.refreshed += [token] if (token := fields.get("refresh_token")) else []
                self.asked.set()
                await self.answers.wait()
                return self._tokens(fields)
            case _:
                return IssuerReply(404, b"")

    def _tokens(self, form: dict[str, str]) -> IssuerReply:
        if self.refuses:
            return _reply({"error": self.refuses}, 400)
        nonce = None
        if form["grant_type"] == "authorization_code":
            begun = self._codes.pop(form["code"], None)
            if (
                begun is None
                or begun["code_challenge"] != challenge_of(form["code_verifier"])
                or begun["redirect_uri"] != form["redirect_uri"]
            ):
                return _reply({"error": "invalid_grant"}, 400)
            nonce = begun["nonce"]
        elif form["refresh_token"] not in self.refresh_tokens:
            return _reply({"error": "invalid_grant"}, 400)
        elif self.rotates and form["refresh_token"] != self.refresh_tokens[0]:
            self.reused.append(form["refresh_token"])
            self.refresh_tokens = []
            return _reply({"error": "invalid_grant"}, 400)
        issued: dict[str, Any] = {}
        if nonce is not None or self.repeats_identity:
            issued["id_token"] = self.token(**{"nonce": nonce, **self.changes})
        if self.gives_refresh_token:
            self.refresh_tokens = [f"upstream-{len(self.refresh_tokens)}", *self.refresh_tokens]
            issued["refresh_token"] = self.refresh_tokens[0]
        return _reply(issued)


def _reply(content: Any, status: int = 200) -> IssuerReply:
    return IssuerReply(status, msgspec.json.encode(content))
