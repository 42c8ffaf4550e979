"""Decides whether a request states everything that its answer depends on."""

from collections.abc import Iterator
from itertools import chain

from tollgate.core.content import Document, Image, InlineMedia, MadeImage, UserContent
from tollgate.core.request import AssistantContent, GenerationRequest
from tollgate.ingress.base import ParsedCall, ParsedWork


def is_self_contained(parsed: ParsedWork) -> bool:
    """Return True for a request that asks for one answer to each prompt and nothing else.

    Such a request neither stores nor compacts anything, runs no tools of the gateway or the
    provider, and contains its media instead of their addresses.
    """
    if not isinstance(parsed, ParsedCall):
        return False
    request = parsed.request
    return (
        parsed.stored_input is None
        and parsed.compacts is None
        and parsed.window is None
        and parsed.edits is None
        and not parsed.background
        and request.choices == 1
        and not request.server_tools
        and not (request.native and request.native.tools)
        and all(map(_is_stated, _parts_of(request)))
    )


def _parts_of(request: GenerationRequest) -> Iterator[UserContent | AssistantContent]:
    for message in chain.from_iterable(request.conversations):
        yield from message.content


def _is_stated(part: UserContent | AssistantContent) -> bool:
    """Return False for documents, and for media of which the request has only the address."""
    if isinstance(part, Image | MadeImage):
        return isinstance(part.source, InlineMedia)
    return not isinstance(part, Document)
