"""Bedrock under a session for each team: whose session signs, and how often STS is asked.

Keeps C103.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import parse_qs

import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from tests.functional.providers.one_provider import AWS, CHAT, Secrets, script
from tests.gateways import House, RecordedReply, house
from tests.moto_server import running_moto
from tests.upstream import FakeUpstream, Script
from tests.upstream.server import Received
from tollgate.aws.container_credentials import CredentialsUnavailable
from tollgate.aws.role_sessions import StsRole
from tollgate.aws.sigv4 import Credentials, Signer, fixed
from tollgate.core.clock import SystemClock
from tollgate.engine.generate import generate
from tollgate.providers.ports.base import ProviderRow, Timeouts, WireRequest
from tollgate.providers.transports.authorization import ProviderServices
from tollgate.providers.transports.http_pool import HttpPool
from tollgate.settings import Settings
from tollgate.wiring.generation import wire_upstream
from tollgate.wiring.providers import CatalogProviders, Registry
from tollgate.wiring.role_sessions import session_transports

ROLE = "arn:aws:iam::123456789012:role/tollgate-BedrockRole"
REGION = "eu-west-1"
SIGNER = Signer("sts", REGION, fixed(Credentials("AKID", "shh", "token")), SystemClock())
BEDROCK = {
    "converse": ProviderRow(slug="near", codec="bedrock", transport=AWS, region=REGION),
    "mantle": ProviderRow(
        slug="near", codec="openai_chat", transport=CHAT, auth="bedrock-mantle", region=REGION
    ),
}


def session(name: str) -> Script:
    """STS's answer, as in the example of "AssumeRole" in its API reference."""
    return Script(
        headers={"content-type": "text/xml"},
        chunks=[
            b'<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
            b"<AssumeRoleResult><Credentials>"
            b"<AccessKeyId>ASIA-%s</AccessKeyId><SecretAccessKey>s</SecretAccessKey>"
            b"<SessionToken>t</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration>"
            b"</Credentials></AssumeRoleResult></AssumeRoleResponse>" % name.encode()
        ],
    )


def signer_of(received: Received) -> str:
    return received.headers["authorization"].partition("Credential=")[2].partition("/")[0]


@dataclass
class Served:
    """A house whose provider `near` is Bedrock; its other provider has a key."""

    home: House
    pool: HttpPool
    sts: FakeUpstream
    bedrock: FakeUpstream

    async def use(self, row: ProviderRow) -> None:
        url = self.bedrock.url
        far = ProviderRow(slug="far", codec="openai_chat", transport=CHAT, base_url=url)
        rows = {"near": replace(row, base_url=url), "far": far}
        clock = SystemClock()
        services = ProviderServices(
            pool=self.pool,
            secrets=Secrets("sk-secret"),
            credentials=lambda: Credentials("AKID", "shh", "token"),
            aws_region=REGION,
            google_file=None,
            clock=clock,
        )
        role = StsRole(ROLE, SIGNER, self.sts.url)
        catalog = replace(self.home.catalog, providers=rows)
        registry = Registry(services, session_transports(role, services, clock))
        providers = CatalogProviders(catalog, registry)
        self.home.gateway = replace(self.home.gateway, providers=providers)

    async def ask(self, team: str | None, model: str = "acme/small") -> RecordedReply:
        home = self.home
        home.principal = replace(home.principal, team_id=team)
        call = home.call(model)
        reply = RecordedReply()
        await generate(home.gateway, call, home.sink(call, reply))
        return reply

    @property
    def forms(self) -> list[dict[str, list[str]]]:
        return [parse_qs(each.body.decode()) for each in self.sts.received]


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    pool = HttpPool()
    async with FakeUpstream() as sts, FakeUpstream() as bedrock:
        yield Served(await house(), pool, sts, bedrock)
    await pool.close()


@pytest.mark.parametrize("row", BEDROCK)
async def test_c103_each_team_is_served_in_a_session_of_its_own(served: Served, row: str) -> None:
    await served.use(BEDROCK[row])
    teams = ["red", "blue", None]
    served.sts.enqueue(*(session(team or "none") for team in teams))
    served.bedrock.enqueue(*(script(BEDROCK[row].transport) for _ in range(9)))
    for team in teams * 3:
        reply = await served.ask(team)
        assert b"Hello" in reply.body
    found = [signer_of(each) for each in served.bedrock.received]
    assert found == ["ASIA-red", "ASIA-blue", "ASIA-none"] * 3
    # STS is called once for each team, however many requests there are.
    assert [form["RoleSessionName"] for form in served.forms] == [
        ["red@acme"],
        ["blue@acme"],
        ["@acme"],
    ]
    (form, _, _) = served.forms
    assert form == {
        "Action": ["AssumeRole"],
        "Version": ["2011-06-15"],
        "RoleArn": [ROLE],
        "RoleSessionName": ["red@acme"],
        "DurationSeconds": ["3600"],
        "Tags.member.1.Key": ["tollgate-team"],
        "Tags.member.1.Value": ["red@acme"],
    }
    assert "/eu-west-1/sts/aws4_request" in served.sts.received[0].headers["authorization"]


async def test_c103_a_team_without_a_session_is_served_elsewhere_and_not_in_another_session(
    served: Served,
) -> None:
    await served.use(BEDROCK["converse"])
    denied = Script(status=403, chunks=[b"<Error><Code>AccessDenied</Code></Error>"])
    served.sts.enqueue(session("red"), *[denied] * 9)
    served.bedrock.enqueue(script(AWS), script(CHAT))
    await served.ask("red")
    reply = await served.ask("blue", "acme/large")
    assert b"Hello" in reply.body
    assert [each.path for each in served.bedrock.received] == [
        "/model/small-1/converse-stream",
        "/chat/completions",
    ]
    _, record = served.home.stores.books.records.values()
    assert record.attempts[0].error == "provider_unavailable"
    assert record.attempts[-1].provider == "far"


async def test_c103_the_setting_names_the_role_and_unset_nothing_changes(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "AKID",
        "AWS_SECRET_ACCESS_KEY": "shh",
        "TOLLGATE_STS_ENDPOINT_URL": served.sts.url,
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    row = replace(BEDROCK["converse"], base_url=served.bedrock.url)
    catalog = replace(served.home.catalog, providers={"near": row})
    principal = replace(served.home.principal, team_id="red")
    served.sts.enqueue(session("red"))
    served.bedrock.enqueue(*[Script.json(200, {})] * 2)
    for role in ("", ROLE):
        monkeypatch.setenv("TOLLGATE_BEDROCK_ROLE_ARN", role)
        wired = wire_upstream(Settings(), SystemClock())
        provider = CatalogProviders(catalog, wired.registry).provider("near", principal)
        async with provider.transport.open(WireRequest(path="/any", body={}), Timeouts()):
            pass
        await wired.aclose()
    assert [signer_of(each) for each in served.bedrock.received] == ["AKID", "ASIA-red"]
    monkeypatch.setenv("TOLLGATE_BEDROCK_ROLE_ARN", "tollgate-BedrockRole")
    with pytest.raises(ValidationError, match="bedrock_role_arn"):
        Settings()


async def test_c103_motos_sts_begins_a_session() -> None:
    with running_moto() as url:
        lease = await StsRole(ROLE, SIGNER, url).assume("red@acme")
    assert lease.credentials.access_key_id.startswith("ASIA")
    assert lease.credentials.session_token
    assert 3500 < lease.ends_s - SystemClock().now_s() < 3700


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Script(status=503), "STS: HTTP 503"),
        (Script(chunks=[b"<AccessKeyId>ASIA-red</AccessKeyId>"]), "STS: malformed reply"),
        (Script(chunks=[b"\xff\x00"]), "STS: malformed reply"),
        (Script(before_headers="close"), "STS: ConnectionLost"),
    ],
)
async def test_c103_a_reply_without_a_session_is_an_error_without_its_text(
    answer: Script, reason: str
) -> None:
    async with FakeUpstream() as sts:
        sts.enqueue(answer)
        with pytest.raises(CredentialsUnavailable) as raised:
            await StsRole(ROLE, SIGNER, sts.url).assume("red@acme")
    assert str(raised.value).endswith(reason)


async def test_c103_other_providers_are_called_as_before(served: Served) -> None:
    sagemaker = ProviderRow(
        slug="near", codec="openai_chat", transport="sagemaker_runtime", region=REGION
    )
    await served.use(sagemaker)
    served.bedrock.enqueue(Script.json(200, {}), Script.json(200, {}))
    wire = WireRequest(path="/any", body={"model": "m"})
    principal = served.home.principal
    for slug in ("near", "far"):
        provider = served.home.gateway.providers.provider(slug, principal)
        async with provider.transport.open(wire, Timeouts()):
            pass
    assert signer_of(served.bedrock.received[0]) == "AKID"
    assert served.sts.received == []
