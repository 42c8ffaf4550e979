"""One walk through all that the four functions do: what their roles grant, and nothing else, is
asked of AWS on the way.

routing.yaml is served as it is, from scripted hosts in place of its own.
"""

import io
import os
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, Final

import aiohttp

from tests.deployed_functions import CHAT_ROUTES, TOP
from tests.deployment import Answer, Deployment, Workspace, open_stores
from tests.documents import pdf, stream
from tests.iam.refused_keys import refuse_keys
from tests.iam.schedules import leave_work, run_on_schedule, store_an_answer
from tests.iam.searches import search_the_web, searching_at
from tests.stores import an_entry
from tests.unit.ingress.recordings import wav
from tests.unit.web.routes import (
    FILE_ID,
    GENERATION_ID,
    KEY_ID,
    MEMBER_ID,
    OPERATOR_ROUTES,
    RESPONSE_ID,
    ROUTES,
    TEAM_ID,
    UPLOAD_ID,
    WEBHOOK,
    WORKSPACE,
)
from tests.upstream import Script
from tollgate.core.clock import SystemClock
from tollgate.core.ids import IdSource
from tollgate.core.routing.publication import Signature, publish_to_all
from tollgate.ingress.formats import (
    DECISIONS,
    EMBEDDINGS,
    IMAGE_GENERATIONS,
    MESSAGES,
    MODERATIONS,
    RERANK,
    SPEECH,
    TRANSCRIPTIONS,
)
from tollgate.ingress.formats import RESPONSES as RESPONSES_FORMAT
from tollgate.routing.file.compile import canonical_json, compile_catalog
from tollgate.routing.routing_file import Routing
from tollgate.routing.scalars import merge_section
from tollgate.stores.aws.tables import get_item, level_row_key
from tollgate.stores.documents.invoked_reader import INLINE_BYTES_MAX
from tollgate.stores.people.slices import LevelSlices

CHAT: Final = CHAT_ROUTES[0].removeprefix("POST ")
RESPONSES: Final = RESPONSES_FORMAT.path
COUNT: Final = MESSAGES.counting.path if MESSAGES.counting else ""
ECHO: Final = {"model": "test/echo", "messages": [{"role": "user", "content": "Hello"}]}
# By kind of work: the path of its route, and what is asked of any model of it.
ASKED: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "chat": (CHAT, ECHO | {"max_tokens": 16}),
    "embedding": (EMBEDDINGS.path, {"input": "Hello"}),
    "rerank": (RERANK.path, {"query": "Hello", "documents": ["Hello"]}),
    "moderation": (MODERATIONS.path, {"input": "Hello"}),
    "decision": (DECISIONS.path, dict(DECISIONS.example)),
    "image": (IMAGE_GENERATIONS.path, {"prompt": "Hello"}),
    "speech": (SPEECH.path, {"input": "Hello", "voice": "alloy"}),
    "transcription": (TRANSCRIPTIONS.path, {"file": b64encode(wav(9)).decode()}),
}
REFUSED: Final = {"error": {"message": "no such key"}}
UPLOAD: Final = ("POST", "/v1/files")
PUBLIC_ROUTES: Final = ("/v1/models", "/v1/health/live", "/v1/health/ready", "/v1/openapi.json")
QUEUED = {"background": True}


async def tour(
    deployment: Deployment, scheduled: Mapping[str, str], expire_answers: Callable[[], None]
) -> None:
    """Let every function do all that it does.

    `scheduled` are variables of the functions on a schedule; `expire_answers` deletes kept answers,
    as the bucket does after a day.
    """
    workspace = await deployment.workspace()
    routing = await publish(deployment)
    generation_id = await complete(deployment, workspace, expire_answers)
    await read_the_pointer_alone(deployment)
    await read_documents(deployment, workspace)
    await call_every_provider(deployment, workspace, routing)
    await search_the_web(deployment, workspace, CHAT)
    await refuse_keys(deployment, workspace, CHAT)
    await refuse_on_slices(deployment, workspace)
    await count_by_bedrock(deployment, workspace, routing)
    stored = {
        GENERATION_ID: generation_id,
        RESPONSE_ID: await store_responses(deployment, workspace),
        FILE_ID: await store_files(deployment, workspace),
        UPLOAD_ID: await upload_in_parts(deployment, workspace),
    }
    await store_an_answer(deployment.stores, workspace.id)
    await call_every_route(deployment, workspace, stored)
    await leave_work(deployment)
    await run_on_schedule(deployment, scheduled)


async def publish(deployment: Deployment) -> Routing:
    """Publish routing.yaml; its hosts are a scripted provider, and the proxy for Bedrock."""
    routing = compile_catalog(TOP / "routing.yaml", dev=True).routing
    providers = dict(routing.providers)
    for slug, provider in providers.items():
        is_signed = provider.signs_as is not None
        url = deployment.proxy.url if is_signed else deployment.upstreams.beta.url
        if provider.transport != "simulator":
            providers[slug] = provider.model_copy(update={"base_url": url})
    tools = searching_at(deployment.upstreams.beta.url, routing)
    published = routing.model_copy(update={"providers": providers, "server_tools": tools})
    publications = deployment.stores.publications
    sha = await publications.keep(canonical_json(published))
    signature = Signature(by="test", at_s=int(SystemClock().now_s()))
    await publications.move(publish_to_all(None, sha, signature), an_entry())
    return published


async def complete(
    deployment: Deployment, workspace: Workspace, expire_answers: Callable[[], None]
) -> str:
    """Generate, keep the content, repeat and fail under an Idempotency-Key; return an id."""
    settings = {"name": "keeps", "content_days": 7}
    answer = await ask(deployment, "POST", "/v1/keys", workspace, 201, body=settings)
    key = answer.json["key"]

    async def generate(idempotency_key: str, model: str) -> tuple[int, str | None]:
        headers = {"authorization": f"Bearer {key}", "idempotency-key": idempotency_key}
        url = f"{deployment.emulator.url}{CHAT}"
        async with deployment.http.post(url, headers=headers, json=ECHO | {"model": model}) as said:
            return said.status, said.headers.get("x-generation-id")

    status, generation_id = await generate("first", "test/echo")
    assert status == 200
    assert await generate("first", "test/echo") == (200, generation_id)
    expire_answers()
    assert (await generate("first", "test/echo"))[0] == 409
    assert (await generate("second", "test/echo:529"))[0] == 529
    assert generation_id is not None
    return generation_id


async def read_documents(deployment: Deployment, workspace: Workspace) -> None:
    """Have a small document and a large one read for a model that reads none."""
    small = f"data:application/pdf;base64,{b64encode(pdf(['Hello'])).decode()}"
    large = pdf(["Hello"], further={6: stream(os.urandom(INLINE_BYTES_MAX))})
    file_id = await send_file(deployment, workspace, large, "large.pdf")
    for part in ({"file_data": small}, {"file_id": file_id}):
        body = ECHO | {"messages": [{"role": "user", "content": [{"type": "file", "file": part}]}]}
        answer = await deployment.ask("POST", CHAT, workspace.inference, body=body)
        assert answer.status == 200, answer.body


async def store_responses(deployment: Deployment, workspace: Workspace) -> str:
    """Store a response and one that continues it, and compact both; return the id of the latter."""
    settings = {"name": "stores", "response_days": 7}
    made = await ask(deployment, "POST", "/v1/keys", workspace, 201, body=settings)
    headers = {"authorization": f"Bearer {made.json['key']}"}
    url, fields = f"{deployment.emulator.url}{RESPONSES}", dict[str, str]()
    for _ in range(2):
        body = {"model": "test/echo", "input": "Hello", **fields}
        async with deployment.http.post(url, headers=headers, json=body) as said:
            answer = await said.json()
            assert (said.status, answer.get("store")) == (200, True), answer
        fields = {"previous_response_id": answer["id"]}
    for path in (url, f"{url}/compact"):
        async with deployment.http.post(path, headers=headers, json=body | QUEUED) as said:
            assert said.status == 200, await said.text()
    return str(answer["id"])


async def store_files(deployment: Deployment, workspace: Workspace) -> str:
    """Upload a file twice under one Idempotency-Key, and download it; return its id.

    Two more are sent to the bucket: one is first looked at by its id, and one in a request.
    """
    headers = {"authorization": f"Bearer {workspace.management.secret}"}
    url = f"{deployment.emulator.url}/v1/files"
    for _ in range(2):
        form = aiohttp.FormData({"purpose": "user_data"}, default_to_multipart=True)
        form.add_field("file", b"Hello", filename="a.txt")
        named = headers | {"idempotency-key": "once"}
        async with deployment.http.post(url, headers=named, data=form) as said:
            file = await said.json()
            assert said.status == 200, file
    sent_id = await send_file(deployment, workspace)
    await ask(deployment, "GET", f"/v1/files/{sent_id}", workspace, 200)
    part = {"type": "file", "file_id": await send_file(deployment, workspace)}
    asked = {"model": "test/read", "messages": [{"role": "user", "content": [part]}]}
    keyed = {"authorization": f"Bearer {workspace.inference.secret}"}
    url_of_chat = f"{deployment.emulator.url}{CHAT}"
    async with deployment.http.post(url_of_chat, headers=keyed, json=asked) as answered:
        assert answered.status == 200, await answered.text()
    file_id = str(file["id"])
    async with deployment.http.get(f"{url}/{file_id}/content", headers=headers) as content:
        said = await content.read()
        assert (content.status, said) == (200, b"Hello"), (content.url, content.status, said)
    return file_id


async def upload_in_parts(deployment: Deployment, workspace: Workspace) -> str:
    """Upload a file in parts; return the id of another upload, which is pending."""
    announced = {"filename": "c.txt", "purpose": "user_data", "bytes": 5, "mime_type": "text/plain"}
    headers = {"authorization": f"Bearer {workspace.management.secret}"}
    made, pending = [
        str((await ask(deployment, "POST", "/v1/uploads", workspace, 200, announced)).json["id"])
        for _ in range(2)
    ]
    part_ids = []
    for data in (b"Hel", b"lo"):
        form = aiohttp.FormData(default_to_multipart=True)
        form.add_field("data", data, filename="part")
        url = f"{deployment.emulator.url}/v1/uploads/{made}/parts"
        async with deployment.http.post(url, headers=headers, data=form) as sent:
            part = await sent.json()
            assert sent.status == 200, part
            part_ids.append(part["id"])
    body = {"part_ids": part_ids}
    await ask(deployment, "POST", f"/v1/uploads/{made}/complete", workspace, 200, body)
    return pending


async def send_file(
    deployment: Deployment, workspace: Workspace, content: bytes = b"Hello", name: str = "b.txt"
) -> str:
    """Announce a file and send its content to the bucket; return its id."""
    announced = {"filename": name, "purpose": "user_data", "bytes": len(content)}
    signed = (await ask(deployment, "POST", "/v1/files/presigned", workspace, 200, announced)).json
    async with deployment.http.put(
        signed["url"], headers=signed["headers"], data=io.BytesIO(content)
    ) as sent:
        assert sent.status == 200
    return str(signed["id"])


async def read_the_pointer_alone(deployment: Deployment) -> None:
    """Read the published catalog's name as chat does where five seconds end within a request."""
    chat = deployment.chat.config
    settings = deployment.settings.model_copy(
        update={
            "dynamodb_endpoint_url": deployment.proxy.url,
            "aws_access_key_id": chat.access_key_id,
            "aws_secret_access_key": "synthetic",
        }
    )
    async with aclosing(open_stores(settings, SystemClock())) as stores:
        assert await stores.publications.publication() is not None


async def call_every_provider(
    deployment: Deployment, workspace: Workspace, routing: Routing
) -> None:
    """Ask each provider once, and each model of Bedrock's; all of them refuse."""
    asked = set()
    for slug, model in routing.models.items():
        for endpoint in model.endpoints:
            provider = routing.providers[endpoint.provider]
            is_signed = provider.signs_as is not None
            once = endpoint.upstream if is_signed else endpoint.provider
            if provider.transport == "simulator" or once in asked:
                continue
            asked.add(once)
            for upstream in (deployment.upstreams.bedrock, deployment.upstreams.beta):
                upstream.reset()
                upstream.enqueue(Script.json(401, REFUSED))
            only = {"only": [endpoint.provider], "allow_fallbacks": False}
            path, fields = ASKED[model.kind]
            body = fields | {"model": slug, "provider": only}
            answer = await deployment.ask("POST", path, workspace.inference, body=body)
            assert answer.status >= 400
            left = deployment.upstreams.bedrock.unplayed + deployment.upstreams.beta.unplayed
            assert left == 1, (slug, endpoint.provider, answer.json)


async def count_by_bedrock(deployment: Deployment, workspace: Workspace, routing: Routing) -> None:
    """Count the tokens of a prompt by each model of Bedrock's that counts."""
    for slug, model in routing.models.items():
        for endpoint in model.endpoints:
            provider = routing.providers[endpoint.provider]
            dialect = merge_section(provider.dialect, endpoint.dialect)
            if not (dialect.counts_tokens and provider.signs_as is not None):
                continue
            deployment.upstreams.bedrock.reset()
            deployment.upstreams.bedrock.enqueue(Script.json(200, {"inputTokens": 1}))
            body = ECHO | {"model": slug, "provider": {"only": [endpoint.provider]}}
            answer = await deployment.ask("POST", COUNT, workspace.inference, body=body)
            assert (answer.status, answer.json) == (200, {"input_tokens": 1})
            assert answer.headers["x-tollgate-token-count"] == "exact"


# Nobody has signed in, nothing is held, and the batch function makes videos, in other tests.
NEVER_MADE: Final = ("/sessions/", "/holds/", "/videos/")


async def call_every_route(
    deployment: Deployment, workspace: Workspace, stored: Mapping[str, str]
) -> None:
    """Ask every route of the api function for something that there is.

    `stored` are the ids of what is there, by their placeholders.
    """
    for path in PUBLIC_ROUTES:
        await ask(deployment, "GET", path, workspace, 200)
    operator = await deployment.operator()
    people = await make_people(deployment, workspace, "all")
    for number, route in enumerate(ROUTES):
        method, path, body = route
        if "/batches" in path:  # They need a queue, which test_batch_function.py has.
            continue
        if any(it in str((path, body)) for it in people):
            # A route may delete whom it names.
            people = await make_people(deployment, workspace, f"route {number}")
        known = {**people, WORKSPACE: workspace.id, **stored, "new": f"new-{number}"}
        if path.startswith(WEBHOOK):
            hook = {"url": "https://hooks.invalid/"}
            made = await ask(deployment, "POST", "/v1/webhooks", workspace, 201, body=hook)
            path = path.replace(WEBHOOK, f"/v1/webhooks/{made.json['data']['id']}")
        for placeholder, value in known.items():
            path = path.replace(placeholder, value)
            body = replaced(body, placeholder, value)
        key = operator if route in OPERATOR_ROUTES else workspace.management
        answer = await deployment.ask(method, path, key, body=body)
        # Every response is refused to be cancelled, once it has been read; an upload is a form.
        refused = path.endswith(("/cancel", "/complete", "/parts")) or (method, path) == UPLOAD
        expected = 400 if refused else 299
        if path.endswith("/redeliver") or any(part in path for part in NEVER_MADE):
            # No event is delivered before a schedule runs.
            expected = 404
        assert answer.status <= expected, (method, path, answer.json)


async def make_people(deployment: Deployment, workspace: Workspace, name: str) -> Mapping[str, str]:
    """Make a team without anybody, a member of another, and the member's key.

    Return their ids by their placeholders.
    """
    empty, full, member = (f"{it}-{name.replace(' ', '-')}" for it in ("empty", "full", "ana"))
    for team in (empty, full):
        limited = {"id": team, "limits": {"day": 5}}
        await ask(deployment, "POST", "/v1/teams", workspace, 201, body=limited)
    person = {"id": member, "team_id": full}
    await ask(deployment, "POST", "/v1/members", workspace, 201, body=person)
    named = {"name": f"for {name}", "member_id": member}
    made = await ask(deployment, "POST", "/v1/keys", workspace, 201, body=named)
    return {TEAM_ID: empty, MEMBER_ID: member, KEY_ID: made.json["data"]["id"]}


async def refuse_on_slices(deployment: Deployment, workspace: Workspace) -> None:
    """Ask for a team whose state has slices, and has none that takes another request."""
    team = {"id": "hot", "requests_per_minute": 1, "burst": 1}
    await ask(deployment, "POST", "/v1/teams", workspace, 201, body=team)
    stores, clock = deployment.stores, SystemClock()
    care = LevelSlices(stores.client, stores.tables, ids=IdSource(clock), clock=clock)
    row = await get_item(
        stores.client, stores.tables.core, level_row_key("team", workspace.id, "hot")
    )
    assert row is not None
    assert await care.grow("team", row, 1)
    made = await ask(
        deployment, "POST", "/v1/keys", workspace, 201, body={"name": "hot", "team_id": "hot"}
    )
    headers = {"authorization": f"Bearer {made.json['key']}"}
    said = []
    for _ in range(2):
        url = f"{deployment.emulator.url}{CHAT}"
        async with deployment.http.post(url, headers=headers, json=ECHO) as answer:
            said.append(answer.status)
    assert said == [200, 429]


def replaced(value: Any, placeholder: str, real: str) -> Any:
    """Return a body with the real name of a resource in place of a placeholder."""
    match value:
        case dict():
            return {key: replaced(it, placeholder, real) for key, it in value.items()}
        case _:
            return real if value == placeholder else value


async def ask(
    deployment: Deployment,
    method: str,
    path: str,
    workspace: Workspace,
    status: int,
    body: object = None,
) -> Answer:
    """Return the answer to a management key, which has that status."""
    answer = await deployment.ask(method, path, workspace.management, body=body)
    assert answer.status == status, (path, answer.body)
    return answer
