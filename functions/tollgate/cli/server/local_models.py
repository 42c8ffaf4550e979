"""Models of the inference servers on this machine, which `tollgate dev` serves as `local/<name>`.

Requests go only to 127.0.0.1, without a key.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Final
from urllib.parse import urlsplit

from msgspec import MsgspecError, Struct, json
from pydantic import ValidationError

from tollgate.cli.server.local_servers import SERVERS, FoundModel, LocalServer
from tollgate.core.addresses import find_reach
from tollgate.http1.errors import HttpError, UnusableReply
from tollgate.http1.exchange import send_alone
from tollgate.http1.request import Request
from tollgate.routing.model_names import LOCAL_AUTHOR
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.routing_file import Routing
from tollgate.routing.scalars import MODEL_SLUG
from tollgate.routing.schema import ModelSection, ProviderSection

_HOST: Final = "127.0.0.1"
# Time limit for all requests to a server together.
_TIMEOUT_S: Final = 1.5
_REPLY_BYTES_MAX: Final = 4 * 1024 * 1024
_FOLDER: Final = re.compile(r".*[/\\]")
_ENDING: Final = re.compile(r"(\.gguf|:latest)$")
_NOT_IN_SLUGS: Final = re.compile(r"[^a-z0-9._:-]+")
_NAMES_SHOWN_MAX: Final = 4

_Found = Sequence[tuple[LocalServer, Sequence[FoundModel]]]


class LocalModels(Struct, frozen=True):
    """The models of this machine's servers, except a server on the gateway's own port."""

    own_port: int
    today: date
    servers: Sequence[LocalServer] = SERVERS

    def added_to(self, routing: Routing) -> Routing:
        """Return a routing with the models of the servers that run now.

        A server whose address or name is in the file is left out, because the file decides how it
        is used.
        """
        ports = {*_local_ports(routing), self.own_port}
        free = (each for each in self.servers if each.row not in routing.providers)
        found = asyncio.run(_find([server for server in free if server.port not in ports]))
        models = dict(_sections(found, routing.models, self.today))
        used = {endpoint.provider for model in models.values() for endpoint in model.endpoints}
        rows = {server.row: _row(server) for server, _ in found if server.row in used}
        return routing.model_copy(
            update={
                "providers": {**routing.providers, **rows},
                "models": {**routing.models, **models},
            }
        )


def describe_local_models(catalog: Catalog) -> str:
    """Return a line of the banner for each server whose models are served."""
    lines = []
    for server in SERVERS:
        slugs = sorted(
            slug
            for slug, model in catalog.models.items()
            if any(endpoint.provider == server.row for endpoint in model.endpoints)
        )
        if slugs:
            rest = len(slugs) - _NAMES_SHOWN_MAX
            more = f" and {rest} more" if rest > 0 else ""
            lines.append(f"\n  {server.name:<15} {', '.join(slugs[:_NAMES_SHOWN_MAX])}{more}")
    return "".join(lines)


def _local_ports(routing: Routing) -> Iterator[int | None]:
    """Yield the ports of this machine to which the file already sends requests."""
    for row in routing.providers.values():
        address = urlsplit(row.base_url or "")
        if address.hostname and find_reach(address.hostname) == "local":
            yield address.port


async def _find(servers: Sequence[LocalServer]) -> _Found:
    found = await asyncio.gather(*map(_list_models, servers))
    return list(zip(servers, found, strict=True))


async def _list_models(server: LocalServer) -> Sequence[FoundModel]:
    """Return the models of a server; none if it does not run, or if another program answers."""
    host = f"http://{_HOST}:{server.port}"

    async def ask(path: str, body: Mapping[str, str] | None) -> bytes:
        request = Request(
            method="GET" if body is None else "POST",
            url=f"{host}{path}",
            headers={"accept": "application/json", "content-type": "application/json"},
            body=() if body is None else (json.encode(body),),
        )
        async with send_alone(request) as reply:
            if reply.status != 200:
                raise UnusableReply("the server has no such list")
            return await reply.read_all(_REPLY_BYTES_MAX)

    try:
        async with asyncio.timeout(_TIMEOUT_S):
            return await server.list_models(ask)
    except (HttpError, MsgspecError, TimeoutError):
        return ()


def _sections(
    found: _Found, taken: Iterable[str], today: date
) -> Iterator[tuple[str, ModelSection]]:
    """Yield the models by slug; the slug of a second model with the same name includes its server's
    name.
    """
    slugs = set(taken)
    for server, models in found:
        for model in models:
            slug = _slug(model.id)
            if slug in slugs:
                slug = f"{slug}-{server.slug}"
            section = _section(server, model, today)
            if section is not None and slug not in slugs and re.fullmatch(MODEL_SLUG, slug):
                slugs.add(slug)
                yield slug, section


def _slug(id_: str) -> str:
    """Return `local/` and a model's name without folders, in the characters of a slug."""
    name = _ENDING.sub("", _FOLDER.sub("", id_).lower())
    return f"{LOCAL_AUTHOR}/{_NOT_IN_SLUGS.sub('-', name)}"


def _section(server: LocalServer, model: FoundModel, today: date) -> ModelSection | None:
    """Return a model's section for a routing file; None if no valid section exists."""
    price = {"input": 0, "output": 0, "source": "this machine", "checked": today}
    try:
        return ModelSection.model_validate(
            {
                "name": f"{model.id} on {server.name}",
                "context": model.tokens_max,
                "max_output": model.tokens_max,
                "input": model.input,
                "supports": model.supports,
                "endpoints": ({"provider": server.row, "upstream": model.id, "price": price},),
            }
        )
    except ValidationError:
        return None


def _row(server: LocalServer) -> ProviderSection:
    return ProviderSection(
        name=server.name,
        codec="openai_chat",
        transport="http_sse",
        base_url=f"http://{_HOST}:{server.port}/v1",
        dialect=server.dialect,
    )
