"""Routes that upload a file in parts."""

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from tollgate.core.errors import RequestError, invalid_request, not_found
from tollgate.core.files.stored import FilePurpose, PartialUpload, check_size, clean_filename
from tollgate.ingress.form_body import parse_form
from tollgate.stores.ports.administration import FileStore, UploadStore
from tollgate.web.admission import Caller, OwnThings, admitted_router
from tollgate.web.files.file_shapes import FileFields, FileObject, MediaType
from tollgate.web.own import Own
from tollgate.web.services import Services

_PATH: Final = "/v1/uploads"
# https://platform.openai.com/docs/api-reference/uploads/add-part (2026-11-22)
PART_BYTES_MAX: Final = 64 * 1024 * 1024
# A form has boundaries and headers in addition to the part itself.
PART_FORM_BYTES_MAX: Final = PART_BYTES_MAX + 64 * 1024


class UploadBody(FileFields):
    """A file to upload in parts."""

    filename: Annotated[str, Field(min_length=1, max_length=1_024)]
    bytes: Annotated[int, Field(ge=1)]
    mime_type: MediaType


class CompletionBody(BaseModel):
    """The parts that make up the content of a file, in order."""

    model_config = ConfigDict(extra="forbid")

    part_ids: Annotated[
        list[Annotated[str, Field(max_length=64)]], Field(min_length=1, max_length=1_000)
    ]
    md5: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{32}$")] | None = Field(
        None, description="MD5 of the whole content, hexadecimal"
    )


class UploadObject(BaseModel):
    """An upload in parts, in OpenAI's format."""

    id: str
    object: Literal["upload"] = "upload"
    bytes: int
    created_at: int = Field(description="Unix second")
    expires_at: int = Field(description="Unix second at which the upload expires")
    filename: str
    purpose: FilePurpose
    status: Literal["pending", "completed", "cancelled"]
    file: FileObject | None = Field(description="null until the upload is completed")

    @classmethod
    def of(cls, upload: PartialUpload) -> "UploadObject":
        """Build the object from an upload."""
        file = upload.file
        return cls(
            id=upload.id,
            bytes=file.size_bytes,
            created_at=file.created_s,
            expires_at=upload.expires_s,
            filename=file.filename,
            purpose=file.purpose,
            status=upload.status,
            file=FileObject.of(file) if upload.status == "completed" else None,
        )


class PartObject(BaseModel):
    """A part of an upload."""

    id: str
    object: Literal["upload.part"] = "upload.part"
    created_at: int = Field(description="Unix second")
    upload_id: str


def part_form_description() -> dict[str, Any]:
    """Return OpenAPI's description of the form with a part."""
    data = {"type": "string", "format": "binary"}
    schema = {"type": "object", "properties": {"data": data}, "required": ["data"]}
    return {"required": True, "content": {"multipart/form-data": {"schema": schema}}}


def upload_routes(services: Services) -> APIRouter:
    """Return the routes below `/v1/uploads`, except the route of parts."""
    router = admitted_router(services, prefix=_PATH, tag="files")

    @router.post("")
    async def create_upload(upload: UploadBody, principal: Caller) -> UploadObject:
        """Begin the upload of a file in parts, which must be completed within an hour."""
        files, uploads = _stores(services)
        check_size(upload.bytes, files.caps.file_bytes_max, "bytes")
        new = upload.new_file(principal, clean_filename(upload.filename), upload.mime_type)
        return UploadObject.of(
            await uploads.create(await services.for_workspace(new), upload.bytes)
        )

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
            raise invalid_request(f"data {fault}.", "data")
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
        raise not_found("This deployment has no bucket for files.")
    return services.files, services.uploads


async def _check_own(uploads: UploadStore, own: Own, upload_id: str) -> None:
    """Raise RequestError(not_found) for an upload that the caller cannot access."""
    if own.is_all:
        return
    file = await uploads.file(own.workspace_id, upload_id)
    if file is None or not own.has_file(file):
        raise _not_found()


def _not_found() -> RequestError:
    """Return the refusal for an unknown id, which is the same as for an id of another workspace."""
    return not_found(
        "There is no such open upload in this workspace; uploads expire after an hour.", "upload_id"
    )
