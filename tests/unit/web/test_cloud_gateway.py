"""What Claude Code asks of a gateway that signs people in."""

import hashlib

import pytest

from tests.unit.sign_in.signing_in import house
from tests.unit.web.browsing import Browser, bearer


async def test_managed_settings_are_of_the_members_team_and_are_not_sent_again() -> None:
    browser = Browser(house())
    tokens = await browser.sign_in()
    reply = await browser.ask("GET", "/managed/settings", **bearer(tokens["access_token"]))
    assert reply.json["settings"] == {"model": "acme/claude"}
    assert reply.headers["etag"] == f'"{reply.json["checksum"]}"'
    # Of the settings as JSON.stringify writes them once their names are sorted.
    written = hashlib.sha256(b'{"model":"acme/claude"}').hexdigest()
    assert reply.json["checksum"] == f"sha256:{written}"
    known = {"if_none_match": reply.headers["etag"], **bearer(tokens["access_token"])}
    again = await browser.ask("GET", "/managed/settings", **known)
    assert (again.status, again.body) == (304, b"")
    browser = Browser(house())
    browser.home.upstream.person["groups"] = ["admins"]
    tokens = await browser.sign_in()
    other = await browser.ask("GET", "/managed/settings", **bearer(tokens["access_token"]))
    assert other.json["settings"] == {"model": "acme/opus"}


async def test_without_managed_settings_there_are_none() -> None:
    browser = Browser(house(managed_settings=[]))
    tokens = await browser.sign_in()
    reply = await browser.ask("GET", "/managed/settings", **bearer(tokens["access_token"]))
    assert reply.status == 404


@pytest.mark.parametrize("signal", ["metrics", "logs", "traces"])
async def test_telemetry_is_taken_counted_and_bounded(
    signal: str, caplog: pytest.LogCaptureFixture
) -> None:
    browser = Browser(house())
    tokens = await browser.sign_in()
    secret = bearer(tokens["access_token"])
    with caplog.at_level("INFO", "tollgate.telemetry"):
        binary = await browser.ask("POST", f"/v1/{signal}", b"\x0a\x03abc", **secret)
        text = await browser.ask("POST", f"/v1/{signal}", b'{"resourceMetrics": []}', **secret)
    assert (binary.status, binary.body) == (200, b"")
    assert (text.status, text.json) == (200, {})
    fields = [record.fields for record in caplog.records if hasattr(record, "fields")]
    assert [(it["signal"], it["bytes"], it["member_id"]) for it in fields] == [
        (signal, 5, "ana@acme.example"),
        (signal, 23, "ana@acme.example"),
    ]
    large = await browser.ask("POST", f"/v1/{signal}", b"x" * 5_000_000, **secret)
    assert large.status == 413
    assert (await browser.ask("POST", f"/v1/{signal}", b"x")).status == 401
