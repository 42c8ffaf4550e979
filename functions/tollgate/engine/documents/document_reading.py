"""Reads documents for endpoints that cannot read them. This happens before the hold, because the
amount held depends on the documents' size.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import Final, Literal

from msgspec.structs import replace

from tollgate.core.buffer_budget import take
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
from tollgate.core.errors import ErrorCode, GatewayError, LedgerError, RequestError
from tollgate.core.files.media_types import PDF, decode_base64
from tollgate.core.records.generation import PromptTokens, ReadSize
from tollgate.core.request import GenerationRequest
from tollgate.engine.documents.document_forms import DocumentForms
from tollgate.engine.documents.reading_budget import ReadingBudget
from tollgate.engine.documents.recognition import KnownDocument, Recognition
from tollgate.engine.files.media import RequestMedia, refusing_excess
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.tool_policies import policies_of, refuse_receiver
from tollgate.providers.ports.base import Target
from tollgate.routing.planning.plan import Attempt, Plan
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.plugin_sections import PdfSection

# Maximum number of documents in a request.
DOCUMENTS_MAX: Final = 16
# Fraction of a request's remaining time that its documents may take; the model needs the rest.
READING_PART: Final = 0.5
_FIELD: Final = "messages"
_TOO_LARGE: Final[Mapping[DocumentFault, str]] = {
    DocumentFault.TOO_MANY_BYTES: "has {amount:,} bytes; the limit is {most:,}",
    DocumentFault.TOO_MANY_PAGES: "has {amount:,} pages; the limit is {most:,}",
    DocumentFault.TOO_MUCH_TEXT: "has more than {most:,} bytes of text",
    DocumentFault.TOO_LARGE_PICTURES: "has page images that are too large in total; read fewer "
    "pages, or use the engine text",
    DocumentFault.TOO_COMPLEX: "is too large when it is unpacked",
    DocumentFault.TOO_MANY_PARTS: "has {amount:,} rows, columns, cells or paragraphs; the limit is "
    "{most:,}",
    DocumentFault.TOO_SLOW: "takes too long to read",
}
_UNREADABLE: Final[Mapping[DocumentFault, str]] = {
    DocumentFault.MALFORMED: "is incomplete, or not of the type that it states",
    DocumentFault.ENCRYPTED: "is protected by a password",
    DocumentFault.CRASHED: "could not be read within the memory limit",
}


async def read_documents(
    gateway: Gateway,
    call: Call,
    plan: Plan,
    media: RequestMedia,
    *,
    planning_request: PlanningRequest,
) -> Plan:
    """Read a request's documents if an endpoint needs that, and return the plan for the resulting
    content.

    Sets `media.forms` to the versions of the request. If every endpoint reads documents itself, the
    plan is unchanged. Raises RequestError for a document that cannot be read.
    """
    request, section = media.request, gateway.planner.catalog.pdf
    reader = gateway.reader
    if not isinstance(request, GenerationRequest):
        return plan
    _require_services(gateway, request.documents)
    if reader is None or section is None:
        return plan
    unmet = _find_unmet(gateway, call, section, request)
    if unmet is not None and _recognizes_all(request.documents):
        raise unmet
    compute = gateway.computations(call).run
    documents = await compute(partial(_documents, request))
    if request.leaves_documents or not documents:
        return plan
    targets = [attempt.target for attempt in plan.attempts]
    reader_targets = await compute(
        lambda: [target for target in targets if not reads_itself(target, request)]
    )
    if not reader_targets:
        return plan
    if len({part.source for part in documents}) > DOCUMENTS_MAX:
        raise RequestError(
            ErrorCode.DOCUMENT_TOO_LARGE,
            f"{_FIELD}: the gateway reads at most {DOCUMENTS_MAX} documents per request.",
            param=_FIELD,
        )
    task = _task(section, request, reader_targets)
    loaded = await media.load(documents)
    returned = {file.sha256: file for file in request.known_files}
    known = await _read_in_time(call, reader, documents, loaded, task=task, returned=returned)
    if not known:
        return plan
    if _recognizes_all(request.documents):
        known = {source: each.without_text() for source, each in known.items()}
    always = _is_demanded(request)
    recognition = None if unmet else _recognition(gateway, section, request, known)
    forms = DocumentForms(request, known, section=section, always=always, recognition=recognition)
    measured = await compute(
        partial(_measure, planning_request, forms, known, targets, always=always)
    )
    new_plan = gateway.planner.plan(measured, now_s=gateway.clock.now_s())
    attempts = tuple(attempt for attempt in new_plan.attempts if forms.shows(attempt.target))
    if not attempts:
        raise unmet or _scanned(new_plan.attempts, recognition)
    media.forms = forms
    return replace(new_plan, attempts=attempts)


def reads_itself(target: Target, request: GenerationRequest) -> bool:
    """Return True if an endpoint gets the documents of a request unchanged."""
    if request.leaves_documents:
        return True
    # The type of a URL's content is unknown before it is fetched, so PDF is assumed, as for most
    # documents.
    media_types = {_stated_type(part.source) for part in _documents(request)}
    return not _is_demanded(request) and all(map(target.reads_file, media_types))


def _is_demanded(request: GenerationRequest) -> bool:
    """Return True if the caller wants the gateway to read documents for every endpoint."""
    options = request.documents
    return options is not None and options.engine not in (None, "native")


def _recognizes_all(options: DocumentOptions | None) -> bool:
    return options is not None and options.engine == "ocr"


def _require_services(gateway: Gateway, options: DocumentOptions | None) -> None:
    """Raise RequestError if the caller asks for a reader or for OCR and this gateway has none."""
    section = gateway.planner.catalog.pdf
    if options is None or options.engine in (None, "native"):
        return
    if gateway.reader is None or section is None:
        required = "reading of documents"
    elif options.engine == "ocr" and (section.ocr is None or gateway.recognizer is None):
        required = "OCR"
    else:
        return
    raise RequestError(
        ErrorCode.INVALID_REQUEST,
        f"{options.field} requires {required}, which this gateway does not offer.",
        param=options.field,
    )


def _find_unmet(
    gateway: Gateway, call: Call, section: PdfSection, request: GenerationRequest
) -> GatewayError | None:
    """Return the refusal to send pages to the OCR engine; None if the prompt policies allow it."""
    if section.ocr is None or gateway.recognizer is None:
        return None
    policies = policies_of(gateway.planner.catalog, request, call.principal)
    unmet = section.ocr.find_unmet(policies)
    field = request.documents.field if request.documents else _FIELD
    receiver = f"the OCR engine {section.ocr.engine}"
    return None if unmet is None else refuse_receiver(field, receiver, unmet)


def _recognition(
    gateway: Gateway,
    section: PdfSection,
    request: GenerationRequest,
    known: Mapping[MediaSource, KnownDocument],
) -> Recognition | None:
    """Return the OCR task for pages without text; None if no OCR service is configured."""
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
    section: PdfSection, request: GenerationRequest, targets: Sequence[Target]
) -> ReadingTask:
    options = request.documents
    engine = (options.engine if options else None) or section.engine
    limit = options.pages_max if options else None
    sees = any("image" in target.input for target in targets)
    pictures: Literal["none", "textless", "all"] = "all" if engine == "images" else "textless"
    if engine == "ocr" or not sees:
        # Some OCR services take images instead of a file, so the pages are rendered for them.
        draws = section.ocr is not None and section.ocr.service.reads_pictures
        drawn: Literal["textless", "all"] = "all" if engine == "ocr" else "textless"
        pictures = drawn if draws else "none"
    return ReadingTask(
        pages_max=section.pages_max if limit is None else min(limit, section.pages_max),
        cuts=limit is not None and limit <= section.pages_max,
        pictures=pictures,
    )


async def _read_in_time(
    call: Call,
    reader: DocumentReader,
    documents: Sequence[Document],
    loaded: Mapping[MediaSource, InlineMedia],
    *,
    task: ReadingTask,
    returned: Mapping[str, KnownFile],
) -> dict[MediaSource, KnownDocument]:
    """Read all documents; raise RequestError if reading takes too long, since no provider is at
    fault.
    """
    limit_s = call.deadline.remaining_s() * READING_PART
    limit = asyncio.timeout(limit_s)
    workspace_id = call.principal.workspace_id
    try:
        async with limit:
            return await _read_all(
                reader, documents, loaded, workspace_id, task=task, returned=returned
            )
    except TimeoutError as late:
        if not limit.expired():
            raise
        raise RequestError(
            ErrorCode.DOCUMENT_TOO_LARGE,
            f"{_FIELD}: the files could not be read within {limit_s:.0f} s.",
            param=_FIELD,
        ) from late


async def _read_all(
    reader: DocumentReader,
    documents: Sequence[Document],
    loaded: Mapping[MediaSource, InlineMedia],
    workspace_id: str,
    *,
    task: ReadingTask,
    returned: Mapping[str, KnownFile],
) -> dict[MediaSource, KnownDocument]:
    """Read each distinct document once, skipping URLs of other kinds of media."""
    parts = {part.source: part for part in documents if part.source in loaded}
    budget = ReadingBudget(workspace_id, documents=len(parts))

    async def know(source: MediaSource, part: Document) -> KnownDocument:
        return await _know(reader, part, loaded[source], budget, task=task, returned=returned)

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
    budget: ReadingBudget,
    *,
    task: ReadingTask,
    returned: Mapping[str, KnownFile],
) -> KnownDocument:
    """Return a document with the pages that the caller sent back, or read the document if there are
    none.
    """
    found = sha256(decode_base64(content.base64)).hexdigest()
    file = returned.get(found)
    if file is not None and len(file.pages) < min(file.pages_total, task.pages_max):
        # The earlier request read fewer pages than this one needs, so the document is read again.
        file = None
    read = file.read if file else await _read(reader, part, content, task=task, budget=budget)
    return KnownDocument(
        content=content,
        read=read,
        sha256=found,
        name=part.filename or read.title,
        is_new=file is None,
    )


async def _read(
    reader: DocumentReader,
    part: Document,
    content: InlineMedia,
    *,
    task: ReadingTask,
    budget: ReadingBudget,
) -> ReadDocument:
    name = part.filename or "the file"
    try:
        async with budget.share() as taken:
            encoded, type_ = content.base64, content.media_type
            read = await reader.read(decode_base64(encoded), type_, task, taken.share)
            taken.cpu_seconds = read.cpu_seconds
            with refusing_excess(_FIELD):
                take(read.size_bytes)
            return read
    except UnreadableDocument as error:
        raise _refused(error, name, content.media_type) from error
    except ReaderUnavailable as error:
        raise LedgerError(
            ErrorCode.SERVICE_UNAVAILABLE, "Documents cannot be read right now."
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
        limit = recognition.section.pages_max
        return RequestError(
            ErrorCode.DOCUMENT_TOO_LARGE,
            f"{_FIELD}: {recognition.pages_total:,} pages have no text; the limit for OCR is "
            f"{limit:,}.",
            param=_FIELD,
        )
    models = ", ".join(sorted({attempt.target.model for attempt in attempts}))
    return RequestError(
        ErrorCode.DOCUMENT_UNREADABLE,
        f"{_FIELD}: a file has no text, and {models} takes no images: use a model that does.",
        param=_FIELD,
    )


def _measure(
    planning_request: PlanningRequest,
    forms: DocumentForms,
    known: Mapping[MediaSource, KnownDocument],
    targets: Sequence[Target],
    *,
    always: bool,
) -> PlanningRequest:
    """Return the planner's input with the largest sizes at any endpoint."""
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
        planning_request,
        input_tokens=max(planning_request.input_tokens, *(size.estimate for size in sizes)),
        input_tokens_max=max(planning_request.input_tokens_max, *(size.most for size in sizes)),
        prompts=prompts if planning_request.prompts else (),
        documents=ReadSize(
            types=tuple(sorted({each.media_type for each in known.values()})),
            tokens_min=min(size.least for size in sizes),
            pages=max(each.text + each.pictured for each in pages),
            recognized=max(each.recognized for each in pages),
            always=always,
        ),
    )
