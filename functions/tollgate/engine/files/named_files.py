"""Looks up the files and URLs in a request, before planning and before money is held."""

import asyncio
import base64
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Final

from msgspec.structs import replace

from tollgate.core.content import Document, FileReference, Image, InlineMedia, MediaUrl, UserContent
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.files.media_types import detect_media_type, kind_of
from tollgate.core.files.picture_files import find_picture_fault
from tollgate.core.files.stored import FoundFile
from tollgate.core.ownership import OwnerScope
from tollgate.core.request import GenerationRequest
from tollgate.core.work.base import Work
from tollgate.engine.files.media import (
    SOUND_FORMATS,
    TOTAL_BYTES_MAX,
    load_content,
    load_file,
    refusing_excess,
    replace_parts,
    typed_by_content,
    unknown_file,
)
from tollgate.engine.gateway import Call, FileReader, Gateway
from tollgate.engine.side_thread import Computations

# Image formats that consist of text, which no model accepts as an image.
_TEXT_PICTURES: Final = {"image/svg+xml": "text/xml"}
# Maximum number of different files in a request; each file costs one lookup.
NAMED_FILES_MAX: Final = 64


async def fetch_awaited(gateway: Gateway, call: Call) -> Call:
    """Return the call once the media whose size determines the hold are loaded."""
    parsed = call.parsed
    awaited = parsed.awaits
    if awaited is None:
        return call
    if isinstance(awaited.source, MediaUrl):
        with refusing_excess(awaited.field):
            fetched = await gateway.media.fetch(
                awaited.source.url, field=awaited.field, bytes_max=awaited.bytes_max
            )
        content = fetched.content
    else:
        content = await load_named_file(
            gateway.files,
            call.principal.workspace_id,
            call.reach,
            awaited.source,
            bytes_max=awaited.bytes_max,
        )
    return replace(call, parsed=replace(parsed, request=awaited.complete(content), awaits=None))


async def find_files_of(gateway: Gateway, call: Call) -> Call:
    """Return the call with its files looked up and, for work other than chat, loaded."""
    request, workspace_id = call.parsed.request, call.principal.workspace_id
    found: Work
    if isinstance(request, GenerationRequest):
        computations = gateway.computations(call)
        found = await find_named_files(
            gateway.files, call.reach, request, computations=computations
        )
    else:
        pictures = await _load_pictures(gateway.files, workspace_id, call.reach, request.files)
        found = request.inline(pictures)
    return replace(call, parsed=replace(call.parsed, request=found))


async def find_named_files(
    files: FileReader | None,
    reach: OwnerScope,
    request: GenerationRequest,
    *,
    computations: Computations,
) -> GenerationRequest:
    """Return the request with the type, size and storage key of its files.

    Audio files are loaded immediately, because an audio part must contain its bytes. Raises
    RequestError for an unknown file or one of the wrong kind; `param` is the field that names it.
    """
    named = await computations.run(lambda: list(_references(request)))
    references = {each.id: each for each in named}
    if len(references) > NAMED_FILES_MAX:
        raise _refused(f"name more than {NAMED_FILES_MAX} files")
    if files is None:
        raise unknown_file(next(iter(references.values())))
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_find(files, computations.workspace_id, reach, reference))
                for reference in references.values()
            ]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    found = dict(zip(references, (task.result() for task in tasks), strict=True))
    for id_, file in found.items():
        if _is_sound(file) and file.media_type not in SOUND_FORMATS:
            raise _unheard(references[id_], file)
    sounds = [_with_place(references[id_], file) for id_, file in found.items() if _is_sound(file)]
    if sum(each.size_bytes or 0 for each in sounds) > TOTAL_BYTES_MAX:
        raise _refused(f"have audio files with more than {TOTAL_BYTES_MAX} bytes in total")
    audio = {each.id: await load_file(files, each) for each in sounds}
    change = partial(_place, found=found, audio=audio)
    changed = await computations.run(partial(replace_parts, request, change, _refused))
    # Audio files count as if the request body had contained them.
    more = sum(len(audio[each.id].base64) for each in named if each.id in audio)
    return replace(changed, size_bytes=request.size_bytes + more)


async def _load_pictures(
    files: FileReader | None,
    workspace_id: str,
    reach: OwnerScope,
    references: Sequence[FileReference],
) -> dict[str, InlineMedia]:
    """Return the images of an image request by file id."""
    pictures: dict[str, InlineMedia] = {}
    room = TOTAL_BYTES_MAX
    for reference in references:
        if reference.id in pictures:
            continue
        content = await load_named_file(files, workspace_id, reach, reference, bytes_max=room)
        room -= len(content)
        if fault := find_picture_fault(content):
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"{reference.field} {fault}.", param=reference.field
            )
        pictures[reference.id] = InlineMedia(
            media_type=detect_media_type(content) or "",
            base64=base64.b64encode(content).decode("ascii"),
        )
    return pictures


async def load_named_file(
    files: FileReader | None,
    workspace_id: str,
    reach: OwnerScope,
    reference: FileReference,
    *,
    bytes_max: int,
) -> bytes:
    """Return the content of a file; raise RequestError if the file does not exist or is
    too large.
    """
    if files is None:
        raise unknown_file(reference)
    found = await _find(files, workspace_id, reach, reference)
    if found.size_bytes > bytes_max:
        raise RequestError(
            ErrorCode.PAYLOAD_TOO_LARGE,
            f"{reference.field} must name a file of at most {bytes_max:,} bytes.",
            param=reference.field,
        )
    return await load_content(files, _with_place(reference, found))


def _references(request: GenerationRequest) -> Iterator[FileReference]:
    for message in chain.from_iterable(request.conversations):
        for part in message.content:
            if isinstance(part, Image | Document) and isinstance(part.source, FileReference):
                yield part.source


async def _find(
    files: FileReader, workspace_id: str, reach: OwnerScope, reference: FileReference
) -> FoundFile:
    try:
        found = await files.find(workspace_id, reference.id)
    except RequestError as refused:
        problem = "names a file whose content differs from what was announced"
        words = f"{reference.field} {problem}: {refused.message}"
        raise RequestError(refused.code, words, param=reference.field) from refused
    if found is None or not reach.has(found.member_id):
        raise unknown_file(reference)
    return replace(found, media_type=_TEXT_PICTURES.get(found.media_type, found.media_type))


def _place(
    part: UserContent, found: Mapping[str, FoundFile], audio: Mapping[str, InlineMedia]
) -> UserContent:
    """Return the part with its file's details, converted to the part type that fits the content."""
    match part:
        case Image(source=FileReference() as reference):
            file = found[reference.id]
            if kind_of(file.media_type) != "image":
                raise RequestError(
                    ErrorCode.INVALID_REQUEST,
                    f"{reference.field} must be the id of an image; that file is "
                    f"{file.media_type}.",
                    param=reference.field,
                )
            return replace(part, source=_with_place(reference, file))
        case Document(source=FileReference() as reference):
            file = found[reference.id]
            source = audio.get(reference.id) or _with_place(reference, file)
            return typed_by_content(replace(part, filename=part.filename or file.filename), source)
        case _:
            return part


def _with_place(reference: FileReference, file: FoundFile) -> FileReference:
    return replace(
        reference, media_type=file.media_type, size_bytes=file.size_bytes, place=file.place
    )


def _is_sound(file: FoundFile) -> bool:
    return kind_of(file.media_type) == "audio"


def _unheard(reference: FileReference, file: FoundFile) -> RequestError:
    return RequestError(
        ErrorCode.INVALID_REQUEST,
        f"{reference.field} must name a WAV, MP3 or WebM file if it names audio; that file "
        f"is {file.media_type}.",
        param=reference.field,
    )


def _refused(problem: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"messages {problem}.", param="messages")
