"""Videos over a house whose providers run jobs: their callers, their workers, and their files."""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from msgspec.structs import replace
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.asgi import Exchange, request
from tests.batches import Fate
from tests.gateways import Always, House, house
from tests.memory.batches import MemoryVideoRequests, MemoryVideoStore
from tests.stores import TESTER
from tests.unit.routing.catalogs import endpoint, model, provider
from tests.unit.web.test_api_app import Api
from tollgate.core.clock import Clock, Deadline
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.files.stored import FileDownload, NewFile, StoredFile
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.core.records.audit import Actor
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.videos import Video
from tollgate.engine.gateway import ProviderDirectory
from tollgate.ingress.formats import VIDEOS
from tollgate.providers.ports.base import Provider, UpstreamRefused, WireRequest
from tollgate.providers.ports.formats import WIRE_FORMATS
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.batches import BatchPlace, VideoServices
from tollgate.web.chat_app import MeteredEndpoint, chat_app
from tollgate.web.generation.entrance import Entrance
from tollgate.web.http.cors import WebLimits
from tollgate.web.local_app import LocalApp
from tollgate.web.videos.working import VideoWorker, VideoWorkerServices

MODEL: Final = "acme/film"
MP4: Final = b"\0\0\0\x14ftypisom" + b"a film"
# Of 8 s at 0.10 dollars each.
EIGHT_SECONDS_NANO_USD: Final = 800_000_000
MODELS: Final = {
    MODEL: model(
        endpoint("near", "film-1", dollars_in="0", dollars_out="0", video_second="0.10")
        | {
            "overrides": (
                {"when": {"image_size": "1792x1024"}, "price": {"video_second": Decimal("0.3")}},
            )
        },
        endpoint("far", "film-2", dollars_in="0", dollars_out="0", video_second="0.05"),
        kind="video",
        input=("text", "image"),
        max_output=None,
    )
}


@dataclass
class Studio:
    """A provider of videos in OpenAI's form; a job takes so many polls."""

    polls: int = 1
    refusals: list[Exception] = field(default_factory=list)
    error: dict[str, str] | None = None
    content: bytes = MP4
    variants: dict[str, bytes] = field(default_factory=dict)
    submitted: list[WireRequest] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    at_once: int = 0
    at_once_max: int = 0

    async def submit(self, request: WireRequest) -> bytes:
        if self.refusals:
            raise self.refusals.pop(0)
        self.submitted.append(request)
        return json.dumps({"id": f"job-{len(self.submitted)}", "status": "queued"}).encode()

    async def get(self, path: str, *, bytes_max: int) -> bytes:
        job, _, content = path.removeprefix("/videos/").partition("/")
        self.asked[path] += 1
        if content == "content":
            self.at_once += 1
            self.at_once_max = max(self.at_once_max, self.at_once)
            await asyncio.sleep(1)
            self.at_once -= 1
            return self.content
        if content:
            variant = content.partition("variant=")[2]
            if variant not in self.variants:
                raise UpstreamRefused(404, {}, b"{}")
            return self.variants[variant]
        if self.asked[path] <= self.polls:
            return json.dumps({"id": job, "status": "in_progress", "progress": 40}).encode()
        status = "completed" if self.error is None else "failed"
        return json.dumps({"id": job, "status": status, "error": self.error}).encode()

    def fields(self, number: int = 0) -> dict[str, bytes]:
        return {part.name: part.content for part in self.submitted[number].form}


@dataclass(frozen=True)
class Studios:
    """The providers of a house, which also run jobs."""

    directory: ProviderDirectory
    studios: dict[str, Studio]

    def provider(self, slug: str, principal: Principal) -> Provider:
        known, form = self.directory.provider(slug, principal), WIRE_FORMATS["openai_chat"]
        return Provider(
            known.codec,
            known.transport,
            known.batch_codecs,
            known.stream_codecs,
            job_codecs=form.job_codecs,
            job_calls=lambda: self.studios[slug],
        )


@dataclass
class Shelf:
    """Stored files, and the bucket that serves them at their addresses."""

    clock: Clock
    ids: IdSource
    files: dict[tuple[str, str], StoredFile] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    full: Exception | None = None

    async def create(self, new: NewFile, content: bytes) -> StoredFile:
        if self.full is not None:
            raise self.full
        file = StoredFile(
            id=f"file-{self.ids.new_id()}",
            workspace_id=new.workspace_id,
            key_id=new.key_id,
            member_id=new.member_id,
            filename=new.filename,
            purpose=new.purpose,
            media_type=new.media_type,
            size_bytes=len(content),
            created_s=int(self.clock.now_s()),
            expires_s=int(self.clock.now_s()) + (new.expires_after_s or 0),
        )
        self.contents[file.id] = content
        self.files[file.workspace_id, file.id] = file
        return file

    async def get(self, workspace_id: str, file_id: str) -> StoredFile | None:
        file = self.files.get((workspace_id, file_id))
        return None if file is None or file.is_expired(self.clock.now_s()) else file

    async def delete(self, workspace_id: str, file_id: str, *, by: Actor) -> bool:
        return self.files.pop((workspace_id, file_id), None) is not None

    async def download(self, file: StoredFile) -> FileDownload | None:
        return FileDownload(url=f"http://bucket.test/{file.id}")

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        content = self.contents[scope["path"].removeprefix("/")]
        await Response(content)(scope, receive, send)


@dataclass
class Filming:
    """A gateway that makes videos, its app, and its workers."""

    home: House
    near: Studio
    far: Studio
    shelf: Shelf
    store: MemoryVideoStore
    requests: MemoryVideoRequests
    api: Api
    secret: str = ""
    woken: list[BatchPlace] = field(default_factory=list)

    async def send(self, place: BatchPlace, *, delay_s: int = 0) -> None:
        self.woken.append(place)

    @property
    def services(self) -> VideoServices:
        return VideoServices(store=self.store, requests=self.requests, queue=self)

    @property
    def app(self) -> ASGIApp:
        chat = chat_app(
            self.home.front,
            Always(self.home.gateway),
            WebLimits(),
            videos=lambda: self.services,
        )
        whole = LocalApp(chat, self.api.app)

        async def either(scope: Scope, receive: Receive, send: Send) -> None:
            is_bucket = (b"host", b"bucket.test") in scope["headers"]
            await (self.shelf.serve if is_bucket else whole)(scope, receive, send)

        return either

    @property
    def deadline(self) -> Deadline:
        return Deadline.within(self.home.gateway.clock, 870.0)

    async def call(
        self, method: str, path: str = "", *, key: str | None = None, body: bytes = b"", **sent: Any
    ) -> Exchange:
        headers = {"authorization": f"Bearer {key or self.secret}", **sent}
        return await request(self.app, method, f"/v1/videos{path}", headers=headers, body=body)

    async def ask(self, *, key: str | None = None, **fields: Any) -> Exchange:
        body = {"model": MODEL, "prompt": "A bridge", "seconds": "8", "size": "1280x720"} | fields
        return await self.call("POST", key=key, body=json.dumps(body).encode())

    async def key(self, workspace_id: str = "acme", **settings: Any) -> str:
        new = NewKey(workspace_id=workspace_id, **({"label": "films"} | settings))
        return (await self.home.stores.keys.create(new, by=TESTER)).secret

    def worker(self, fate: Fate | None = None) -> VideoWorker:
        """One more process, which may have a fate."""
        gateway, videos, files = self.home.gateway, self.services, self.shelf
        if fate is not None:
            gateway = replace(gateway, ledger=fate.over(gateway.ledger))
            videos = replace(videos, store=fate.over(self.store), requests=fate.over(self.requests))
            files = fate.over(files)
        entrance = Entrance(self.home.front, Always(gateway), WebLimits(), responses=None)
        return VideoWorker(
            VideoWorkerServices(
                videos=videos,
                files=files,  # type: ignore[arg-type]
                keys=self.home.stores.keys,
                gateways=Always(gateway),
                endpoint=MeteredEndpoint(VIDEOS, entrance, answers=None, contents=None),
                ids=gateway.ids,
                clock=gateway.clock,
            )
        )

    async def run(self, id_: str, worker: VideoWorker | None = None) -> Video:
        """Work until the video has ended."""
        clock, worker = self.home.gateway.clock, worker or self.worker()
        while True:
            wait_s = await worker.work(BatchPlace("acme", id_), Deadline.within(clock, 870.0))
            if wait_s is None:
                return await self.video(id_)
            await clock.sleep(wait_s)

    async def video(self, id_: str) -> Video:
        found = await self.store.get(BatchPlace("acme", id_))
        assert found is not None
        return found

    @property
    def records(self) -> list[GenerationRecord]:
        return list(self.home.stores.books.records.values())


async def open_studio(**changes: Any) -> Filming:
    home = await house(
        providers={"near": provider(), "far": provider()}, models=MODELS, routes={}, **changes
    )
    near, far = Studio(), Studio()
    studios = Studios(home.gateway.providers, {"near": near, "far": far})
    home.gateway = replace(home.gateway, providers=studios)
    clock = home.gateway.clock
    shelf, api = Shelf(clock, home.gateway.ids), Api(home, "", "", {})
    filming = Filming(
        home, near, far, shelf, MemoryVideoStore(clock), MemoryVideoRequests(), api, home.secret
    )
    api.changes = {"files": shelf, "videos": filming.services}
    return filming


def unreachable() -> UpstreamError:
    """A failure that leaves open whether the provider has accepted."""
    return UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "The connection broke.")


def refused(status: int) -> UpstreamRefused:
    body = json.dumps({"error": {"message": "no", "code": "busy"}}).encode()
    return UpstreamRefused(status, {}, body)
