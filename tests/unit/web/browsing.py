"""A person's browser and programs before the app that signs people in, without a server."""

from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from starlette.types import ASGIApp

from tests.asgi import Exchange
from tests.memory.stores import MemoryAccessLog
from tests.unit.sign_in.signing_in import House, house
from tollgate.core.ids import IdSource
from tollgate.web.http.cors import WebLimits
from tollgate.web.sign_in.sign_in_app import login_app
from tollgate.web.sign_in.sign_in_services import Login, LoginServices

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class NoJournal:
    """A journal for an app without defects."""

    def unexpected_error(self, error: Exception, request_id: str) -> None:
        raise error


class Browser:
    """A person's browser, and programs beside it."""

    def __init__(
        self, home: House | None, *, body_s: float = 10.0, knows_callers: bool = True
    ) -> None:
        self.home = home or house()
        ids = IdSource(self.home.clock)
        login = None
        if home is not None:
            login = Login(
                sign_in=home.sign_in,
                issuer=home.issuer,
                people=home.people,
                browser=home.browser,
                grants=home.grants,
                codes=home.codes,
                members=home.members,
                sessions=home.sessions,
            )
        services = LoginServices(
            login=login,
            keys=self.home.keys,
            access_log=MemoryAccessLog(self.home.books, self.home.clock),
            ids=ids,
            journal=NoJournal(),
            clock=self.home.clock,
            body_s=body_s,
            knows_callers=knows_callers,
        )
        self.app: ASGIApp = login_app(services, WebLimits())
        self.cookie = ""

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        address: str = "192.0.2.7",
        **headers: str,
    ) -> Exchange:
        path, _, query = path.partition("?")
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie:
            sent["cookie"] = self.cookie
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "scheme": "https",
            "server": ("gateway.example", 443),
            "client": (address, 1),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
        }
        reply = await Exchange(scope, [body]).run(self.app)
        for name, value in reply.raw_headers:
            if name == "set-cookie":
                self.cookie = value.partition(";")[0]
        return reply

    async def form(self, path: str, **fields: str) -> Exchange:
        return await self.ask("POST", path, urlencode(fields).encode())

    async def sign_in(self) -> Any:
        """Sign the issuer's person in by the device grant; return the tokens."""
        codes = (await self.form("/oauth/device_authorization")).json
        reply = await self.ask(
            "POST",
            "/device",
            urlencode({"user_code": codes["user_code"]}).encode(),
            origin="https://gateway.example",
        )
        await self.ask("GET", self.back(reply))
        fields = {"grant_type": DEVICE_GRANT, "device_code": codes["device_code"]}
        return (await self.form("/oauth/token", **fields)).json

    def back(self, reply: Exchange) -> str:
        """Return the path at which the issuer sends the browser back."""
        assert reply.status == 303, reply.body
        url = reply.headers["location"]
        state = parse_qs(urlsplit(url).query)["state"][0]
        return "/oauth/callback?" + urlencode(
            {"state": state, "code": self.home.upstream.visit(url)}
        )


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}
