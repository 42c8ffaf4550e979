"""Compiles a valid routing file to the canonical JSON that functions read."""

from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from pydantic_core import to_json

from tollgate.core.secret import STANDARD_VARIABLES, KeyVariables
from tollgate.routing.file.load import load
from tollgate.routing.routing_file import Routing


class CompiledCatalog(Struct, frozen=True):
    """A catalog as canonical JSON, with the SHA-256 that identifies it everywhere."""

    sha: str
    content: bytes
    routing: Routing


def compile_catalog(
    path: Path, *, dev: bool = False, variables: KeyVariables = STANDARD_VARIABLES
) -> CompiledCatalog:
    """Check and compile a file (with its development files if `dev` is set); raise InvalidRouting
    if it has errors.
    """
    return compile_routing(load(path, dev=dev, variables=variables))


def compile_routing(routing: Routing) -> CompiledCatalog:
    """Compile a routing that has been checked."""
    content = canonical_json(routing)
    return CompiledCatalog(sha256(content).hexdigest(), content, routing)


def canonical_json(routing: Routing) -> bytes:
    """Return a routing as JSON that is identical for all files with the same meaning."""
    return to_json(_sorted(routing.model_dump(mode="json", by_alias=True, exclude_none=True)))


def _sorted(value: object) -> object:
    match value:
        case dict():
            return {key: _sorted(value[key]) for key in sorted(value)}
        case list():
            return [_sorted(item) for item in value]
        case _:
            return value
