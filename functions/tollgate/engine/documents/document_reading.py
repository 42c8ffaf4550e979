"""Reads a request's documents for endpoints that cannot read them, before any money is held.

The size of the hold follows from what was read, as with recordings (decision 153).
"""

import asyncio
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import chain
from typing import Final, Literal

from msgspec.structs import replace

from tollgate.core.content import Document, FileReference, InlineMedia, MediaSource
from tollgate.core.documents.known_files import KnownFile
from tollgate.core.documents.reading import (
    DocumentFault,
    DocumentOptions,
    DocumentReader,
    ReadDocument,
    ReaderUnavailable,
    ReadingTask,
    UnreadableDocument,
)
from tollgate.core.errors import ErrorCode, LedgerError, RequestError
from tollgate.core.files.media_types import PDF, decode_base64
from tollgate.core.records.generation import PromptTokens, ReadSize
from tollgate.core.request import GenerationRequest
from tollgate.engine.documents.document_forms import DocumentForms
from tollgate.engine.documents.known_documents import KnownDocument
from tollgate.engine.documents.recognition import Recognition
from tollgate.engine.files.media import RequestMedia
from tollgate.engine.gateway import Gateway
from tollgate.providers.ports.base import Target
from tollgate.routing.planning.plan import Attempt, Plan
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.plugin_sections import PdfSection

# Limits of one request: documents in total, and documents read at the same time. A machine reads as
# many at a time for all requests, and a document waits at most half a minute for its turn.
DOCUMENTS_MAX: Final = 16
_AT_A_TIME_MAX: Final = 4
_FIELD: Final = "messages"
_TOO_LARGE: Final[Mapping[DocumentFault, str]] = {
    DocumentFault.TOO_MANY_BYTES: "has {amount:,} bytes, and at most {most:,} are read",
    DocumentFault.TOO_MANY_PAGES: "has {amount:,} pages, and at most {most:,} are read",
    DocumentFault.TOO_MUCH_TEXT: "has more than {most:,} bytes of text",
    DocumentFault.TOO_LARGE_PICTURES: "has pages whose pictures are too large together; read fewer "
    "pages, or use the engine text",
    DocumentFault.TOO_COMPLEX: "is too large when it is unpacked",
    DocumentFault.TOO_SLOW: "takes too long to read",
}
_UNREADABLE: Final[Mapping[DocumentFault, str]] = {
    DocumentFault.MALFORMED: "is incomplete, or not of the type that it states",
    DocumentFault.ENCRYPTED: "is protected by a password",
    DocumentFault.CRASHED: "could not be read within the memory limit",
}


async def read_documents(
    gateway: Gateway, wanted: PlanningRequest, plan: Plan, media: RequestMedia
) -> Plan:
    """Return the plan for a request whose documents are read for the endpoints that cannot read
    them.

    `media` then holds the forms of the request. The plan is unchanged if every endpoint reads the
    documents itself. Raises RequestError for a document that cannot be read.
    """
    request, section = media.request, gateway.planner.catalog.pdf
    reader = gateway.reader
    if not isinstance(request, GenerationRequest):
        return plan
    if reader is None or section is None:
        _require_no_reading(request.documents)
        return plan
    _require_recognition(gateway, section, request.documents)
    documents = _documents(request)
    if request.leaves_documents or not documents:
        return plan
    targets = [attempt.target for attempt in plan.attempts]
    reading = [target for target in targets if not reads_itself(target, request)]
    if not reading:
        return plan
    if len({part.source for part in documents}) > DOCUMENTS_MAX:
        raise RequestError(
            ErrorCode.DOCUMENT_TOO_LARGE,
            f"{_FIELD}: at most {DOCUMENTS_MAX} documents of a request are read for a model.",
            param=_FIELD,
        )
    task = _task(section, request, reading)
    loaded = await media.load(documents)
    returned = {file.sha256: file for file in request.known_files}
    known = await _read_all(reader, documents, loaded, task=task, returned=returned)
    if not known:
        return plan
    if _recognizes_all(request.documents):
        known = {source: each.without_text() for source, each in known.items()}
    always = _is_demanded(request)
    recognition = _recognition(gateway, section, request, known)
    forms = DocumentForms(request, known, section=section, always=always, recognition=recognition)
    planned = gateway.planner.plan(
        _measure(wanted, forms, known, targets, always=always), now_s=gateway.clock.now_s()
    )
    usable = tuple(attempt for attempt in planned.attempts if forms.shows(attempt.target))
    if not usable:
        raise _scanned(planned.attempts, recognition)
    media.forms = forms
    return replace(planned, attempts=usable)


def reads_itself(target: Target, request: GenerationRequest) -> bool:
    """Return whether an endpoint gets the documents of a request as they are."""
    if request.leaves_documents:
        return True
    # The type behind a URL is not known before it is fetched; PDF is assumed, as most are.
    stated = {_stated_type(part.source) for part in _documents(request)}
    return not _is_demanded(request) and all(map(target.reads_file, stated))


def _is_demanded(request: GenerationRequest) -> bool:
    """Return whether the caller wants documents to be read for every endpoint."""
    options = request.documents
    return options is not None and options.engine not in (None, "native")


def _require_no_reading(options: DocumentOptions | None) -> None:
    """Raise RequestError if the caller demands reading, which nothing here does."""
    if options is not None and options.engine not in (None, "native"):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"{options.field} demands that documents are read, which this gateway does not do.",
            param=options.field,
        )


def _recognizes_all(options: DocumentOptions | None) -> bool:
    return options is not None and options.engine == "ocr"


def _require_recognition(
    gateway: Gateway, section: PdfSection, options: DocumentOptions | None
) -> None:
    """Raise RequestError if the caller demands text recognition, and no service here does it."""
    if not options or not _recognizes_all(options):
        return
    if section.ocr is None or gateway.recognizer is None:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"{options.field} demands the recognition of scans, which this gateway does not do.",
            param=options.field,
        )


def _recognition(
    gateway: Gateway,
    section: PdfSection,
    request: GenerationRequest,
    known: Mapping[MediaSource, KnownDocument],
) -> Recognition | None:
    """Return the recognition of pages without text; None if no service here does it."""
    if section.ocr is None or gateway.recognizer is None:
        return None
    everywhere = _recognizes_all(request.documents)
    return Recognition(gateway.recognizer, section.ocr, known, everywhere=everywhere)


def _documents(request: GenerationRequest) -> list[Document]:
    return [
        part
        for message in chain.from_iterable(request.conversations)
        for part in message.content
        if isinstance(part, Document)
    ]


def _stated_type(source: MediaSource) -> str:
    if isinstance(source, InlineMedia | FileReference):
        return source.media_type or PDF
    return PDF


def _task(
    section: PdfSection, request: GenerationRequest, reading: Sequence[Target]
) -> ReadingTask:
    options = request.documents
    engine = (options.engine if options else None) or section.engine
    limit = options.pages_max if options else None
    sees = any("image" in target.input for target in reading)
    pictures: Literal["none", "textless", "all"] = "all" if engine == "images" else "textless"
    if engine == "ocr" or not sees:
        # Some services recognize pictures, so that pages are drawn for them.
        draws = section.ocr is not None and section.ocr.service.reads_pictures
        drawn: Literal["textless", "all"] = "all" if engine == "ocr" else "textless"
        pictures = drawn if draws else "none"
    return ReadingTask(
        pages_max=section.pages_max if limit is None else min(limit, section.pages_max),
        cuts=limit is not None and limit <= section.pages_max,
        pictures=pictures,
    )


async def _read_all(
    reader: DocumentReader,
    documents: Sequence[Document],
    loaded: Mapping[MediaSource, InlineMedia],
    *,
    task: ReadingTask,
    returned: Mapping[str, KnownFile],
) -> dict[MediaSource, KnownDocument]:
    """Read each document once; a URL that turned out to be another kind of media is left out."""
    parts = {part.source: part for part in documents if part.source in loaded}
    turns = asyncio.Semaphore(_AT_A_TIME_MAX)

    async def know(source: MediaSource, part: Document) -> KnownDocument:
        async with turns:
            return await _know(reader, part, loaded[source], task=task, returned=returned)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = {
                source: group.create_task(know(source, part)) for source, part in parts.items()
            }
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return {source: task_.result() for source, task_ in tasks.items()}


async def _know(
    reader: DocumentReader,
    part: Document,
    content: InlineMedia,
    *,
    task: ReadingTask,
    returned: Mapping[str, KnownFile],
) -> KnownDocument:
    """Return a document with the pages of an earlier answer if they suffice; otherwise read it."""
    found = sha256(decode_base64(content.base64)).hexdigest()
    file = returned.get(found)
    if file is not None and len(file.pages) < min(file.pages_total, task.pages_max):
        # The earlier request wanted fewer pages than this one.
        file = None
    read = file.read if file else await _read(reader, part, content, task)
    return KnownDocument(
        content=content,
        read=read,
        sha256=found,
        name=part.filename or read.title,
        is_new=file is None,
    )


async def _read(
    reader: DocumentReader, part: Document, content: InlineMedia, task: ReadingTask
) -> ReadDocument:
    name = part.filename or "the file"
    try:
        return await reader.read(decode_base64(content.base64), content.media_type, task)
    except UnreadableDocument as error:
        raise _refused(error, name, content.media_type) from error
    except ReaderUnavailable as error:
        raise LedgerError(
            ErrorCode.SERVICE_UNAVAILABLE, "Documents cannot be read at the moment."
        ) from error


def _refused(error: UnreadableDocument, name: str, media_type: str) -> RequestError:
    fault = error.fault
    if fault is DocumentFault.UNKNOWN_TYPE:
        return RequestError(
            ErrorCode.UNSUPPORTED_FILE_TYPE,
            f"{_FIELD}: {name} is {media_type}, which this gateway does not read.",
            param=_FIELD,
        )
    is_large = fault in _TOO_LARGE
    words = _TOO_LARGE[fault] if is_large else _UNREADABLE[fault]
    return RequestError(
        ErrorCode.DOCUMENT_TOO_LARGE if is_large else ErrorCode.DOCUMENT_UNREADABLE,
        f"{_FIELD}: {name} {words.format(amount=error.amount, most=error.most)}.",
        param=_FIELD,
    )


def _scanned(attempts: Sequence[Attempt], recognition: Recognition | None) -> RequestError:
    if recognition is not None:
        most = recognition.section.pages_max
        return RequestError(
            ErrorCode.DOCUMENT_TOO_LARGE,
            f"{_FIELD}: {recognition.pages_total:,} pages have no text, and at most {most:,} are "
            "recognized.",
            param=_FIELD,
        )
    models = ", ".join(sorted({attempt.target.model for attempt in attempts}))
    return RequestError(
        ErrorCode.DOCUMENT_UNREADABLE,
        f"{_FIELD}: a file has no text, and {models} takes no images: use a model that does.",
        param=_FIELD,
    )


def _measure(
    wanted: PlanningRequest,
    forms: DocumentForms,
    known: Mapping[MediaSource, KnownDocument],
    targets: Sequence[Target],
    *,
    always: bool,
) -> PlanningRequest:
    """Return the planner's input with the largest sizes that any endpoint gets."""
    measured = [forms.sizes_for(target) for target in targets]
    sizes = [size for each in measured for size in each]
    pages = [forms.pages_for(target) for target in targets]
    prompts = tuple(
        PromptTokens(
            estimate=max(size.estimate for size in same), most=max(size.most for size in same)
        )
        for same in zip(*measured, strict=True)
    )
    return replace(
        wanted,
        input_tokens=max(wanted.input_tokens, *(size.estimate for size in sizes)),
        input_tokens_max=max(wanted.input_tokens_max, *(size.most for size in sizes)),
        prompts=prompts if wanted.prompts else (),
        documents=ReadSize(
            types=tuple(sorted({each.media_type for each in known.values()})),
            tokens_min=min(size.least for size in sizes),
            pages=max(each.text + each.pictured for each in pages),
            recognized=max(each.recognized for each in pages),
            always=always,
        ),
    )
