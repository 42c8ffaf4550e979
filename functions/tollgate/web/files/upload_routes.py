"""Routes that upload a file in parts."""

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
# A form has boundaries and headers in addition to its part.
PART_FORM_BYTES_MAX: Final = PART_BYTES_MAX + 64 * 1024


def upload_routes(services: Services) -> APIRouter:
    """Return the routes below `/v1/uploads`, except the route of parts."""
    router = admitted_router(services, prefix=_PATH, tag="files")

    @router.post("")
    async def create_upload(upload: UploadBody, principal: Caller) -> UploadObject:
        """Begin the upload of a file in parts, which must be completed within an hour."""
        files, uploads = _stores(services)
        check_size(upload.bytes, files.caps.file_bytes_max, "bytes")
        expires = upload.expires_after
        new = NewFile(
            workspace_id=principal.workspace_id,
            key_id=principal.key_id,
            member_id=principal.member_id,
            filename=clean_filename(upload.filename),
            purpose=upload.purpose,
            media_type=upload.mime_type,
            expires_after_s=expires.seconds if expires else None,
        )
        return UploadObject.of(await uploads.create(await services.with_expiry(new), upload.bytes))

    @router.post("/{upload_id}/complete")
    async def complete_upload(
        completion: CompletionBody, own: OwnThings, upload_id: str
    ) -> UploadObject:
        """Join the parts in this order into the file, whose content is then checked."""
        _, uploads = _stores(services)
        await _check_own(uploads, own, upload_id)
        completed = await uploads.complete(
            own.workspace_id, upload_id, completion.part_ids, completion.md5
        )
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
    """Return the route that receives parts, whose bodies have a higher limit."""
    router = admitted_router(
        services, prefix=_PATH, tag="files", body_bytes_max=PART_FORM_BYTES_MAX
    )

    @router.post("/{upload_id}/parts", openapi_extra={"requestBody": part_form_description()})
    async def add_part(request: Request, own: OwnThings, upload_id: str) -> PartObject:
        """Add a part of at most 64 MiB, as a form; parts may be sent concurrently."""
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
    """Raise RequestError(not_found) for an upload that the caller may not reach."""
    if own.is_all:
        return
    file = await uploads.file(own.workspace_id, upload_id)
    if file is None or not own.has_file(file):
        raise _not_found()


def _not_found() -> RequestError:
    """Return the refusal for an unknown id, which is the same as for another workspace's id."""
    return RequestError(
        ErrorCode.NOT_FOUND,
        "There is no such open upload in this workspace; uploads expire after an hour.",
        param="upload_id",
    )
