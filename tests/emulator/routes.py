"""Which method of the REST API serves a request."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote


@dataclass(frozen=True)
class Route:
    """A method of a resource: `POST /v1/models/{author}`, `ANY /{proxy+}`."""

    method: str
    resource: str

    @classmethod
    def parse(cls, text: str) -> Route:
        """Raises ValueError."""
        method, _, resource = text.partition(" ")
        segments = resource.split("/")[1:]
        if not resource.startswith("/") or not method.isupper():
            raise ValueError(f"a route is 'METHOD /path': {text!r}")
        # "Lambda proxy integrations in API Gateway": the greedy parameter ends the resource path.
        if any(segment.endswith("+}") for segment in segments[:-1]):
            raise ValueError(f"a greedy parameter is last: {text!r}")
        return cls(method, resource)


@dataclass(frozen=True)
class Match:
    """A resource that fits a path, with its path parameters, decoded; the lowest rank wins."""

    resource: str
    parameters: dict[str, str]
    rank: tuple[int, ...]


def match(resource: str, path: str) -> Match | None:
    """Fit a resource template to a path without its stage.

    A trailing slash is ignored for matching, as REST APIs were seen to do (not documented).
    """
    templates = resource.strip("/").split("/")
    segments = path.removesuffix("/").removeprefix("/").split("/")
    parameters: dict[str, str] = {}
    rank: list[int] = []
    for index, template in enumerate(templates):
        if index >= len(segments):
            return None
        if template.endswith("+}"):
            rest = "/".join(segments[index:])
            if not rest:
                return None
            parameters[template[1:-2]] = unquote(rest)
            return Match(resource, parameters, (*rank, 2))
        if template.startswith("{"):
            if not segments[index]:
                return None
            parameters[template[1:-1]] = unquote(segments[index])
            rank.append(1)
        elif template == segments[index]:
            rank.append(0)
        else:
            return None
    if len(segments) != len(templates):
        return None
    return Match(resource, parameters, tuple(rank))


def select(resources: set[str], path: str) -> Match | None:
    """The most specific resource for a path: literal before parameter before greedy.

    The method is looked up on that resource alone: siblings of a greedy resource are excluded from
    what it represents ("Set up a proxy integration with a proxy resource").
    """
    fitting = [found for resource in resources if (found := match(resource, path))]
    return min(fitting, key=lambda found: found.rank, default=None)
