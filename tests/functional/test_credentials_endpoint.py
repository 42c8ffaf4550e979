"""The endpoint that gives a container its credentials, over a real socket."""

from pathlib import Path

import pytest
from aiohttp import web
from typing_extensions import override

from tests.emulator.credentials import CredentialsServer
from tests.loopback import LocalServer
from tollgate.aws.container_credentials import CredentialsEndpoint, CredentialsUnavailable


async def test_what_it_gives_is_an_identity_and_its_end(tmp_path: Path) -> None:
    async with CredentialsServer() as server:
        lease = await CredentialsEndpoint(server.url, token=server.token).fetch()
        assert lease.credentials.access_key_id == server.identity(1)
        assert lease.ends_s > 0
        # Amazon EKS replaces the file; it is read each time.
        file = tmp_path / "token"
        endpoint = CredentialsEndpoint(server.url, token_file=file)
        with pytest.raises(CredentialsUnavailable, match="FileNotFoundError"):
            await endpoint.fetch()
        file.write_text(server.token + "\n")
        assert (await endpoint.fetch()).credentials.access_key_id == server.identity(2)


@pytest.mark.parametrize("token", [None, "wrong"])
async def test_without_the_right_token_there_is_nothing(token: str | None) -> None:
    async with CredentialsServer() as server:
        with pytest.raises(CredentialsUnavailable, match="HTTP 401"):
            await CredentialsEndpoint(server.url, token=token).fetch()


async def test_nobody_listening_is_unavailable() -> None:
    with pytest.raises(CredentialsUnavailable, match="CannotConnect"):
        await CredentialsEndpoint("http://127.0.0.1:1/credentials").fetch()


class Replying(LocalServer):
    """Answers everything with one body."""

    def __init__(self, body: str) -> None:
        super().__init__()
        self._body = body

    @override
    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=self._body)


@pytest.mark.parametrize(
    "body", ["", "[]", '{"AccessKeyId":"A","SecretAccessKey":"hush-hush"}', "hush-hush"]
)
async def test_a_reply_of_another_form_is_not_quoted(body: str) -> None:
    async with Replying(body) as server:
        with pytest.raises(CredentialsUnavailable, match="malformed reply") as refused:
            await CredentialsEndpoint(server.url).fetch()
    assert "hush" not in str(refused.value)
    assert refused.value.__context__ is None or refused.value.__suppress_context__
