"""Uploads: files that come in parts, for the keys of their workspace."""

from typing import Final

from fastapi import APIRouter, Request

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.files.stored import NewFile, check_size, clean_filename
from tollgate.ingress.form_body import parse_form
from tollgate.stores.ports.administration import FileStore, UploadStore
from tollgate.web.admission import Caller, OwnThings, admitted_router
from tollgate.web.files.upload_shapes import (
    CompletionBody,
    PartObject,
    UploadBody,
    UploadObject,
    part_form_description,
)
from tollgate.web.own import Own
from tollgate.web.services import Services

_PATH: Final = "/v1/uploads"
# https://platform.openai.com/docs/api-reference/uploads/add-part (2026-11-22)
PART_BYTES_MAX: Final = 64 * 1024 * 1024
# A form has boundaries and headers beside its part.
PART_FORM_BYTES_MAX: Final = PART_BYTES_MAX + 64 * 1024


def upload_routes(services: Services) -> APIRouter:
    """Return the routes below `/v1/uploads`, but that of parts."""
    router = admitted_router(services, prefix=_PATH, tag="files")

    @router.post("")
    async def create_upload(asked: UploadBody, principal: Caller) -> UploadObject:
        """Begin the upload of a file in parts, which has an hour."""
        files, uploads = _stores(services)
        check_size(asked.bytes, files.caps.file_bytes_max, "bytes")
        expires = asked.expires_after
        new = NewFile(
            workspace_id=principal.workspace_id,
            key_id=principal.key_id,
            member_id=principal.member_id,
            filename=clean_filename(asked.filename),
            purpose=asked.purpose,
            media_type=asked.mime_type,
            expires_after_s=expires.seconds if expires else None,
        )
        return UploadObject.of(await uploads.create(await services.with_expiry(new), asked.bytes))

    @router.post("/{upload_id}/complete")
    async def complete_upload(
        asked: CompletionBody, own: OwnThings, upload_id: str
    ) -> UploadObject:
        """Join the parts in this order as the file, which is checked by its content."""
        _, uploads = _stores(services)
        await _check_own(uploads, own, upload_id)
        completed = await uploads.complete(own.workspace_id, upload_id, asked.part_ids, asked.md5)
        if completed is None:
            raise _not_found()
        return UploadObject.of(completed)

    @router.post("/{upload_id}/cancel")
    async def cancel_upload(own: OwnThings, upload_id: str) -> UploadObject:
        """Cancel an upload, and remove its parts."""
        _, uploads = _stores(services)
        await _check_own(uploads, own, upload_id)
        cancelled = await uploads.cancel(own.workspace_id, upload_id)
        if cancelled is None:
            raise _not_found()
        return UploadObject.of(cancelled)

    return router


def part_routes(services: Services) -> APIRouter:
    """Return the route that takes parts, whose bodies are larger than those of any other."""
    router = admitted_router(
        services, prefix=_PATH, tag="files", body_bytes_max=PART_FORM_BYTES_MAX
    )

    @router.post("/{upload_id}/parts", openapi_extra={"requestBody": part_form_description()})
    async def add_part(request: Request, own: OwnThings, upload_id: str) -> PartObject:
        """Add a part of at most 64 MiB, as a form; parts may come side by side."""
        _, uploads = _stores(services)
        form = parse_form(await request.body(), request.headers.get("content-type", ""))
        content = form.file("data")
        if not content:
            fault = "is required" if content is None else "must not be empty"
            raise RequestError(ErrorCode.INVALID_REQUEST, f"data {fault}.", param="data")
        check_size(len(content), PART_BYTES_MAX, "data")
        await _check_own(uploads, own, upload_id)
        part = await uploads.add_part(own.workspace_id, upload_id, content)
        if part is None:
            raise _not_found()
        return PartObject(id=part, created_at=services.now_s(), upload_id=upload_id)

    return router


def _stores(services: Services) -> tuple[FileStore, UploadStore]:
    """Return the stores of files; raise RequestError if the deployment has none."""
    if services.files is None or services.uploads is None:
        raise RequestError(ErrorCode.NOT_FOUND, "This deployment has no bucket for files.")
    return services.files, services.uploads


async def _check_own(uploads: UploadStore, own: Own, upload_id: str) -> None:
    """Raise RequestError(not_found) for an upload that the caller does not reach."""
    if own.is_all:
        return
    file = await uploads.file(own.workspace_id, upload_id)
    if file is None or not own.has_file(file):
        raise _not_found()


def _not_found() -> RequestError:
    """Return the refusal of an id; it is the same for one that another workspace has."""
    return RequestError(
        ErrorCode.NOT_FOUND,
        "There is no such upload in this workspace that takes anything: uploads end after an hour.",
        param="upload_id",
    )
