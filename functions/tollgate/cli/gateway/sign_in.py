"""Sign-in to a gateway from a terminal, with a browser on this or another machine."""

import asyncio
import json
import urllib.error
import urllib.request
import webbrowser
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import click
from msgspec import Struct
from typing_extensions import override

from tollgate.cli.gateway.credentials import Credential
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource

_TIMEOUT_S: Final = 30.0
_REPLY_BYTES_MAX: Final = 1024 * 1024
_DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
_CLIENT: Final = "tollgate-cli"
_WAIT_S: Final = 600.0
_SLOWER_S: Final = 5
_REQUESTS_MAX: Final = 50


class Declined(click.ClickException):
    """An OAuth error in the gateway's reply to a token request."""

    def __init__(self, code: str, description: str) -> None:
        super().__init__(description)
        self.code = code


class Endpoints(Struct, frozen=True):
    """The OAuth endpoints of a gateway."""

    authorize: str
    device: str
    token: str
    revoke: str


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A handler that rejects redirects, so that only the named gateway gets a token."""

    @override
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER: Final = urllib.request.build_opener(_NoRedirects)


def gateway_root(url: str) -> str:
    """Return a gateway's address without the API version."""
    return url.rstrip("/").removesuffix("/v1")


def find_endpoints(root: str) -> Endpoints:
    """Return a gateway's OAuth endpoints; raise ClickException if any is on another host."""
    described = _send(f"{root}/.well-known/oauth-authorization-server", None)
    names = (
        "authorization_endpoint",
        "device_authorization_endpoint",
        "token_endpoint",
        "revocation_endpoint",
    )
    found = [str(described.get(name, "")) for name in names]
    gateway = urlsplit(root)
    for address in found:
        endpoint = urlsplit(address)
        if (endpoint.scheme, endpoint.netloc) != (gateway.scheme, gateway.netloc):
            raise click.ClickException(
                f"{root} signs people in at {endpoint.scheme}://{endpoint.netloc}: if you trust "
                "that address, set TOLLGATE_URL to it."
            )
    return Endpoints(*found)


def sign_in_by_listener(endpoints: Endpoints, *, clock: Clock, ids: IdSource) -> Credential:
    """Sign in with a browser on this machine, which returns the code to a local port."""
    verifier, state = (_random_text(ids) for _ in range(2))
    with _Listener(state) as listener:
        address = f"http://127.0.0.1:{listener.server_port}/callback"
        query = {
            "response_type": "code",
            "client_id": _CLIENT,
            "redirect_uri": address,
            "code_challenge": _encode(sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
            "state": state,
        }
        url = f"{endpoints.authorize}?{urlencode(query)}"
        click.echo(f"Sign in with your browser. If it did not open, visit\n\n  {url}\n", err=True)
        webbrowser.open(url)
        code = listener.wait(clock)
    form = {
        "grant_type": "authorization_code",
        "client_id": _CLIENT,
        "code": code,
        "code_verifier": verifier,
        "redirect_uri": address,
    }
    return _credential(_send(endpoints.token, form), clock)


def sign_in_by_device(endpoints: Endpoints, *, clock: Clock) -> Credential:
    """Sign in by confirming a code in a browser on any machine."""
    pending = _send(endpoints.device, {})
    click.echo(
        f"Visit\n\n  {pending['verification_uri_complete']}\n\n"
        f"and confirm the code {pending['user_code']}.",
        err=True,
    )
    pause_s, until_s = int(pending["interval"]), clock.monotonic_s() + int(pending["expires_in"])
    form = {"grant_type": _DEVICE_GRANT, "device_code": str(pending["device_code"])}
    while clock.monotonic_s() < until_s:
        asyncio.run(clock.sleep(pause_s))
        try:
            return _credential(_send(endpoints.token, form), clock)
        except Declined as declined:
            if declined.code == "slow_down":
                pause_s += _SLOWER_S
            elif declined.code not in ("authorization_pending", "temporarily_unavailable"):
                raise
    raise click.ClickException("Nobody confirmed the code in time. Run the command again.")


def renew_session(endpoints: Endpoints, token: str, *, clock: Clock) -> Credential:
    """Return a new session for a refresh token; raise Declined if the gateway refuses it."""
    form = {"grant_type": "refresh_token", "client_id": _CLIENT, "refresh_token": token}
    return _credential(_send(endpoints.token, form), clock)


def revoke(endpoints: Endpoints, token: str) -> None:
    """Revoke a refresh token at the gateway."""
    _send(endpoints.revoke, {"token": token})


def has_browser() -> bool:
    """Return whether this machine can open a browser outside the terminal."""
    try:
        found = webbrowser.get()
    except webbrowser.Error:
        return False
    in_terminal = isinstance(found, webbrowser.GenericBrowser)
    return not in_terminal or isinstance(found, webbrowser.BackgroundBrowser)


class _Listener(HTTPServer):
    """A local HTTP server that waits for the browser to return with a code."""

    def __init__(self, state: str) -> None:
        self.state = state
        self.code: str | None = None
        self.error: str | None = None
        super().__init__(("127.0.0.1", 0), _Callback)

    def wait(self, clock: Clock) -> str:
        """Return the code; raise ClickException if none arrives in time."""
        until_s = clock.monotonic_s() + _WAIT_S
        for _ in range(_REQUESTS_MAX):
            self.timeout = until_s - clock.monotonic_s()
            if self.timeout <= 0:
                break
            self.handle_request()
            if self.error is not None:
                raise click.ClickException(f"The sign-in was refused: {self.error}.")
            if self.code is not None:
                return self.code
        raise click.ClickException("The browser did not return in time. Run the command again.")


class _Callback(BaseHTTPRequestHandler):
    timeout = 5.0

    def do_GET(self) -> None:
        """Accept the code in a request with the expected state; answer other requests with 404."""
        server = self.server
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if (
            not isinstance(server, _Listener)
            or parts.path != "/callback"
            or query.get("state") != server.state
        ):
            self._answer(404, "The terminal does not expect this request.")
            return
        server.error, server.code = query.get("error"), query.get("code")
        self._answer(200, "Return to your terminal; you may close this page.")

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, because the path contains the code."""

    def _answer(self, status: int, text: str) -> None:
        body = f"<!doctype html><title>Tollgate</title><p>{text}</p>".encode()
        self.send_response(status)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _send(url: str, form: Mapping[str, str] | None) -> Any:
    body = None if form is None else urlencode(form).encode()
    headers = {"accept": "application/json"}
    request = urllib.request.Request(url, data=body, headers=headers)  # noqa: S310 - see `gateway`
    try:
        with _OPENER.open(request, timeout=_TIMEOUT_S) as reply:
            return _object(reply.read(_REPLY_BYTES_MAX)) or {}
    except urllib.error.HTTPError as refused:
        raise _declined(refused) from refused
    except (OSError, ValueError) as failed:
        reason = getattr(failed, "reason", failed)
        raise click.ClickException(f"{url} does not answer: {reason}.") from failed


def _declined(refused: urllib.error.HTTPError) -> Declined:
    try:
        body = _object(refused.read(_REPLY_BYTES_MAX))
        error = body.get("error")
        if isinstance(error, dict):
            return Declined(str(error["code"]), str(error["message"]))
        return Declined(str(error), str(body.get("error_description", error)))
    except (ValueError, KeyError, AttributeError):
        return Declined("unknown", f"HTTP {refused.code} {refused.reason}")


def _object(content: bytes) -> Any:
    return json.loads(content) if content else {}


def _credential(reply: Any, clock: Clock) -> Credential:
    lifetime_s = int(reply["expires_in"])
    return Credential(
        access_token=str(reply["access_token"]),
        expires_s=int(clock.now_s()) + lifetime_s,
        lifetime_s=lifetime_s,
        refresh_token=reply.get("refresh_token"),
    )


def _random_text(ids: IdSource) -> str:
    return _encode(ids.random_bytes(32))


def _encode(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")
