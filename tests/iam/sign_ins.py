"""People who sign in by the function for it, at a scripted issuer on this machine."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import aiohttp
from aiohttp import web

from tests.deployed_functions import SOURCE, start_login
from tests.deployment import Deployment, Workspace, environment
from tests.upstream.issuer import CLIENT_ID, ScriptedIssuer
from tollgate.core.clock import SystemClock
from tollgate.sign_in.codes import challenge_of

VERIFIER: Final = "v" * 43
LISTENER: Final = "http://127.0.0.1:49152/callback"


async def sign_people_in(deployment: Deployment, workspace: Workspace, folder: Path) -> None:
    """Sign in by a code, by a browser and by a token; refresh, sign out and be refused."""
    async with _issuer() as issuer:
        root = deployment.emulator.url
        file = folder / "sign-in.json"
        rule = {"claims": {"sub": "u-*"}, "workspace": workspace.id, "role": "developer"}
        sign_in = {
            "public_url": root,
            "issuer": issuer.url,
            "client_id": CLIENT_ID,
            "client_secret": {"secret": "tollgate/oidc"},
            "rules": [rule],
        }
        file.write_text(json.dumps(sign_in))
        variables = environment(deployment.settings, endpoint_url=deployment.proxy.url)
        variables |= {"TOLLGATE_SIGN_IN_FILE": str(file)}
        await start_login(deployment.emulator, variables, SOURCE)
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
            tokens = await _by_device(browser, root, issuer)
            form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
            tokens = await _ask(browser, "POST", f"{root}/oauth/token", data=form)
            await _by_browser(browser, root, issuer)
            body = {"token": issuer.token()}
            opened = await _ask(browser, "POST", f"{root}/v1/session", status=201, json=body)
            for secret in (tokens["access_token"], opened["key"]):
                headers = {"authorization": f"Bearer {secret}"}
                shown = await _ask(browser, "GET", f"{root}/v1/session", headers=headers)
                assert shown["data"]["member_id"] == "ana@acme.example"
                await _ask(browser, "DELETE", f"{root}/v1/session", headers=headers)
            revoked = {"token": tokens["refresh_token"]}
            await _ask(browser, "POST", f"{root}/oauth/revoke", data=revoked)


async def _by_device(
    browser: aiohttp.ClientSession, root: str, issuer: ScriptedIssuer
) -> dict[str, Any]:
    codes = await _ask(browser, "POST", f"{root}/oauth/device_authorization")
    parts = urlsplit(root)
    confirmed = {"user_code": codes["user_code"]}
    headers = {"origin": f"{parts.scheme}://{parts.netloc}"}
    page = browser.post(f"{root}/device", data=confirmed, headers=headers, allow_redirects=False)
    async with page as reply:
        assert reply.status == 303, await reply.text()
        await _come_back(browser, root, issuer, reply.headers["location"])
    grant = "urn:ietf:params:oauth:grant-type:device_code"
    form = {"grant_type": grant, "device_code": codes["device_code"]}
    return await _ask(browser, "POST", f"{root}/oauth/token", data=form)


async def _by_browser(browser: aiohttp.ClientSession, root: str, issuer: ScriptedIssuer) -> None:
    query = {
        "response_type": "code",
        "redirect_uri": LISTENER,
        "code_challenge": challenge_of(VERIFIER),
        "code_challenge_method": "S256",
        "state": "mine",
    }
    page = browser.get(f"{root}/oauth/authorize", params=query, allow_redirects=False)
    async with page as reply:
        assert reply.status == 303, await reply.text()
        address = await _come_back(browser, root, issuer, reply.headers["location"])
    code = parse_qs(urlsplit(address or "").query)["code"][0]
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "code_verifier": VERIFIER,
        "redirect_uri": LISTENER,
    }
    await _ask(browser, "POST", f"{root}/oauth/token", data=form)


async def _come_back(
    browser: aiohttp.ClientSession, root: str, issuer: ScriptedIssuer, url: str
) -> str | None:
    """Return where the browser goes once the person has signed in at the issuer."""
    state = parse_qs(urlsplit(url).query)["state"][0]
    query = {"state": state, "code": issuer.visit(url)}
    page = browser.get(f"{root}/oauth/callback", params=query, allow_redirects=False)
    async with page as reply:
        assert reply.status in (200, 303), await reply.text()
        return reply.headers.get("location")


async def _ask(
    browser: aiohttp.ClientSession, method: str, url: str, *, status: int = 200, **more: Any
) -> Any:
    async with browser.request(method, url, **more) as reply:
        assert reply.status == status, await reply.text()
        return await reply.json() if reply.content_type == "application/json" else None


@asynccontextmanager
async def _issuer() -> AsyncIterator[ScriptedIssuer]:
    """Serve a scripted issuer on a port of this machine."""
    issuer = ScriptedIssuer(SystemClock())

    async def answer(request: web.Request) -> web.Response:
        form = await request.read() if request.method == "POST" else None
        reply = await issuer(f"{issuer.url}{request.path}", form=form)
        return web.Response(status=reply.status, body=reply.body, content_type="application/json")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    issuer.move_to(f"http://127.0.0.1:{port}")
    try:
        yield issuer
    finally:
        await runner.cleanup()
