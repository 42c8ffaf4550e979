"""A whole deployment on loopback: the real functions behind the emulator of Lambda and API Gateway.

Providers are scripted, DynamoDB is ministack, the routing file is compiled as for production with
the simulator added. Nothing of it shares a process with what a test asserts on.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from openai import AsyncOpenAI

from tests.deployed_functions import SOURCE, TOP, Code, start_api, start_chat, start_reader
from tests.emulator import Emulator, Function
from tests.emulator.credentials import CredentialsServer
from tests.iam.proxy import AuthorisingProxy
from tests.iam.roles import Resources, function_statements, template_stack
from tests.stores import TESTER
from tests.upstream import FakeUpstream
from tests.upstream.speakers import Speaker
from tollgate.core.clock import Clock, SystemClock
from tollgate.core.principal import KeyRole
from tollgate.core.records.generation import GenerationRecord
from tollgate.routing.file.compile import compile_catalog
from tollgate.settings import Settings
from tollgate.stores.aws.decoding import read_numbers_by_name
from tollgate.stores.aws.tables import get_item, key_state_key, wallet_key
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.rules.key_names import choose_free_name
from tollgate.wiring.administration import Administration, wire_administration
from tollgate.wiring.stores import Stores, wire_stores

GRANT_NANO_USD = 10_000_000_000
# Below the 6 MB at which API Gateway refuses by itself, so that the functions' own limit is met.
BODY_BYTES_MAX = 1_000_000
# Only a broken test waits this long.
PATIENCE_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The timeouts that the routing file states, in seconds."""

    first_token_s: float = 20
    idle_s: float = 20


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key of a workspace, and its secret."""

    id: str
    secret: str


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A workspace with credit and a key of each role."""

    id: str
    inference: Key
    management: Key


@dataclass(frozen=True)
class Answer:
    """A whole reply; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, kw_only=True)
class Upstreams:
    """Scripted providers, two in OpenAI's format and one in Bedrock's, and a search engine."""

    alpha: FakeUpstream = field(default_factory=FakeUpstream)
    beta: FakeUpstream = field(default_factory=FakeUpstream)
    bedrock: FakeUpstream = field(default_factory=FakeUpstream)
    search: FakeUpstream = field(default_factory=FakeUpstream)

    def of(self, speaker: Speaker) -> FakeUpstream:
        """The one that speaks so."""
        return {"alpha": self.alpha, "bedrock": self.bedrock}[speaker.name]

    @property
    def each(self) -> tuple[FakeUpstream, ...]:
        return self.alpha, self.beta, self.bedrock, self.search


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A running deployment; `stores` look at its tables from outside."""

    emulator: Emulator
    proxy: AuthorisingProxy
    chat: Function
    api: Function
    reader: Function
    settings: Settings
    stores: Stores
    administration: Administration
    upstreams: Upstreams
    http: aiohttp.ClientSession

    async def workspace(self, **settings: Any) -> Workspace:
        """A new workspace that no other test uses; `settings` are those of its inference key."""
        workspace_id = f"w-{os.urandom(6).hex()}"
        await self.administration.credits.grant(
            workspace_id, "first", GRANT_NANO_USD, "test", by=TESTER
        )
        return Workspace(
            id=workspace_id,
            inference=await self._key(workspace_id, "inference", **settings),
            management=await self._key(workspace_id, "management"),
        )

    async def operator(self) -> Key:
        """A management key of the workspace that looks after all others."""
        return await self._key(Settings().operator_workspace, "management")

    def client(self, key: Key) -> AsyncOpenAI:
        """The official SDK, as a customer sets it up; to be closed by the caller."""
        return AsyncOpenAI(
            base_url=f"{self.emulator.url}/v1",
            api_key=key.secret,
            max_retries=0,
            timeout=PATIENCE_S,
        )

    async def ask(
        self,
        method: str,
        path: str,
        key: Key | None = None,
        *,
        body: object = None,
        named: Mapping[str, str] | None = None,
    ) -> Answer:
        """A request as any HTTP client sends it; `body` is bytes, or becomes JSON.

        `named` are headers by name.
        """
        headers = {"content-type": "application/json", **(named or {})}
        if key is not None:
            headers["authorization"] = f"Bearer {key.secret}"
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        content = b"" if body is None else content
        url = f"{self.emulator.url}{path}"
        async with self.http.request(method, url, headers=headers, data=content) as response:
            received = {name.lower(): value for name, value in response.headers.items()}
            return Answer(response.status, received, await response.read())

    async def record(self, workspace: Workspace, generation_id: str) -> GenerationRecord:
        """A generation's record, read past the functions."""
        bare = generation_id.removeprefix("gen-")
        record = await self.stores.generations.get(workspace.id, bare)
        assert record is not None
        return record

    async def holds(self, workspace: Workspace) -> dict[str, int]:
        """What is held by wallet and key, by hold id."""
        held: dict[str, int] = {}
        for key in (wallet_key(workspace.id, 0), key_state_key(workspace.inference.id)):
            item = await get_item(self.stores.client, self.stores.tables.ledger, key)
            assert item is not None
            held |= read_numbers_by_name(item, "h")
        return held

    async def assert_books_closed(self, workspace: Workspace, spent_nano_usd: int) -> None:
        """Nothing is held, and the rest is there: `available + held + spent = granted` (C64)."""
        assert await self.holds(workspace) == {}
        balance = await self.administration.credits.balance(workspace.id)
        assert balance.spent_nano_usd == spent_nano_usd
        assert balance.held_nano_usd == 0
        assert balance.available_nano_usd == GRANT_NANO_USD - spent_nano_usd

    async def _key(self, workspace_id: str, role: KeyRole, **settings: Any) -> Key:
        keys = self.administration.keys
        created = await keys.create(
            NewKey(
                workspace_id=workspace_id,
                label=choose_free_name(await keys.names(workspace_id), "test"),
                role=role,
                requests_per_minute=1_000_000,
                burst=1_000_000,
                **settings,
            ),
            by=TESTER,
        )
        return Key(id=created.summary.id, secret=created.secret)


@asynccontextmanager
async def deployed(
    dynamodb_url: str,
    directory: Path,
    limits: Limits | None = None,
    *,
    code: Code = SOURCE,
    credentials: CredentialsServer | None = None,
    chat_environment: Mapping[str, str] | None = None,
    bucket: str | None = None,
    parameters: Mapping[str, str] | None = None,
    secrets_kms_key: str | None = None,
    queue: str | None = None,
    answers_queue: str | None = None,
    in_flight_max: int = 1,
) -> AsyncIterator[Deployment]:
    """Deploy to this machine; `directory` is for the routing file and what is made of it.

    With `credentials` the streaming function has SnapStart, with an `in_flight_max` above 1 it is
    on Managed Instances; `chat_environment` are variables that it has besides. The functions may do
    what infra/template.yaml with `parameters` lets their roles do, and a request that was refused
    fails the test. `bucket` and the key for secrets lie at `dynamodb_url` too.
    """
    upstreams = Upstreams()
    async with AsyncExitStack() as stack:
        for upstream in upstreams.each:
            await stack.enter_async_context(upstream)
        settings = _settings(dynamodb_url, directory, bucket, secrets_kms_key)
        urls = {"batch_queue_url": queue, "background_queue_url": answers_queue}
        settings = settings.model_copy(update=urls)
        stores = open_stores(settings, SystemClock())
        stack.push_async_callback(stores.aclose)
        await stores.create_tables()
        _compile(settings.catalog_file, upstreams, limits or Limits())
        binary_types = template_stack().api_definition["x-amazon-apigateway-binary-media-types"]
        emulator = Emulator(binary_media_types=tuple(map(str, binary_types)))
        await stack.enter_async_context(emulator)
        proxy = _authorising_proxy(
            settings, upstreams, parameters or {}, invoke_url=emulator.invoke_url
        )
        await stack.enter_async_context(proxy)
        variables = environment(settings, endpoint_url=proxy.url)
        chat_variables = {**variables, **(chat_environment or {})}
        reader = await start_reader(emulator, variables, code)
        chat = await start_chat(emulator, chat_variables, code, credentials, in_flight_max)
        api = await start_api(emulator, variables, code)
        http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PATIENCE_S))
        await stack.enter_async_context(http)
        yield Deployment(
            emulator=emulator,
            proxy=proxy,
            chat=chat,
            api=api,
            reader=reader,
            settings=settings,
            stores=stores,
            administration=wire_administration(settings, stores, SystemClock()),
            upstreams=upstreams,
            http=http,
        )
        assert proxy.take_refusals() == []


def open_stores(settings: Settings, clock: Clock) -> Stores:
    """The stores of a deployment by another clock; to be closed by the caller."""
    return wire_stores(settings, clock)


def _settings(
    dynamodb_url: str, directory: Path, bucket: str | None, secrets_kms_key: str | None
) -> Settings:
    name = os.urandom(6).hex()
    return Settings(
        core_table=f"{name}-core",
        ledger_table=f"{name}-ledger",
        generations_table=f"{name}-generations",
        catalog_file=directory / "routing.json",
        dynamodb_endpoint_url=dynamodb_url,
        objects_bucket=bucket,
        secrets_kms_key=secrets_kms_key,
        kms_endpoint_url=dynamodb_url,
        s3_endpoint_url=dynamodb_url,
    )


def _authorising_proxy(
    settings: Settings, upstreams: Upstreams, parameters: Mapping[str, str], *, invoke_url: str
) -> AuthorisingProxy:
    """Return what stands before the store, and before Bedrock where a catalog names it."""
    resources = Resources(settings=settings, parameters=parameters)
    assert settings.dynamodb_endpoint_url is not None
    services = ("dynamodb", "kms", "s3", "secretsmanager", "sns", "sqs")
    targets = dict.fromkeys(services, settings.dynamodb_endpoint_url)
    targets["bedrock"] = targets["bedrock-mantle"] = upstreams.bedrock.url
    targets["lambda"] = invoke_url
    return AuthorisingProxy(function_statements(template_stack(), resources), targets)


def environment(settings: Settings, *, endpoint_url: str | None = None) -> dict[str, str]:
    """The variables that every function of the deployment has.

    AWS is at `endpoint_url`, or without the proxy where it always is.
    """
    endpoint_url = endpoint_url or settings.dynamodb_endpoint_url
    assert endpoint_url is not None
    variables = {
        "TOLLGATE_CORE_TABLE": settings.core_table,
        "TOLLGATE_LEDGER_TABLE": settings.ledger_table,
        "TOLLGATE_GENERATIONS_TABLE": settings.generations_table,
        "TOLLGATE_CATALOG_FILE": str(settings.catalog_file),
        "TOLLGATE_BODY_BYTES_MAX": str(BODY_BYTES_MAX),
    }
    for service in ("DYNAMODB", "KMS", "LAMBDA", "S3", "SECRETSMANAGER", "SNS", "SQS"):
        variables[f"TOLLGATE_{service}_ENDPOINT_URL"] = endpoint_url
    if settings.secrets_kms_key is not None:
        variables["TOLLGATE_SECRETS_KMS_KEY"] = settings.secrets_kms_key
    if settings.batch_queue_url is not None:
        variables["TOLLGATE_BATCH_QUEUE_URL"] = settings.batch_queue_url
    if settings.background_queue_url is not None:
        variables["TOLLGATE_BACKGROUND_QUEUE_URL"] = settings.background_queue_url
    if settings.objects_bucket is not None:
        variables["TOLLGATE_OBJECTS_BUCKET"] = settings.objects_bucket
    return variables


def _compile(catalog_file: Path, upstreams: Upstreams, limits: Limits) -> None:
    routing = catalog_file.with_name("routing.yaml")
    text = (TOP / "tests" / "deployment.yaml").read_text()
    for name in ("alpha", "beta", "bedrock", "search"):
        text = text.replace(f"{name.upper()}_URL", getattr(upstreams, name).url)
    text = text.replace("FIRST_TOKEN_S", f"{limits.first_token_s:g}")
    routing.write_text(text.replace("IDLE_S", f"{limits.idle_s:g}"))
    # What is included lies in the file's own folder where there is no repository.
    simulator = TOP / "infra" / "simulator.yaml"
    routing.with_name(simulator.name).write_text(simulator.read_text())
    catalog_file.write_bytes(compile_catalog(routing, dev=True).content)
