"""Routes that upload, list, download and delete the files of a workspace."""

import logging
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import FileResponse, RedirectResponse, Response

from tollgate.core.errors import (
    GatewayError,
    RequestError,
    invalid_request,
    not_found,
    permission_denied,
)
from tollgate.core.files.file_types import guess_media_type
from tollgate.core.files.stored import (
    FileDownload,
    FilePurpose,
    StoredFile,
    check_size,
    clean_filename,
)
from tollgate.core.idempotency import Claim
from tollgate.core.ownership import OwnerScope
from tollgate.core.principal import Principal
from tollgate.stores.ports.administration import FileStore
from tollgate.web.admission import By, Caller, OwnThings, admitted_router
from tollgate.web.files.file_shapes import (
    DeletedFile,
    FileList,
    FileObject,
    PresignedBody,
    PresignedObject,
    form_description,
)
from tollgate.web.files.file_upload import Upload, read_upload
from tollgate.web.http.request_id import request_id_of
from tollgate.web.own import Own
from tollgate.web.services import Services

_log: Final = logging.getLogger(__name__)

_PATH: Final = "/v1/files"
_PARAM: Final = "file_id"
_LIMIT_MAX: Final = 10_000
_LIMIT_DEFAULT: Final = 100
_CLAIM_HEADER: Final = "idempotency-key"
_REPLAY_HEADER: Final = "x-idempotent-replay"
_PRIVATE: Final = {"cache-control": "private, max-age=0"}
_CONTENT: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The content, with the type of the file.",
        "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
    },
    302: {"description": "The URL of the content, which is valid for minutes."},
}


def file_routes(services: Services, *, body_bytes_max: int) -> APIRouter:
    """Return the routes below `/v1/files`."""
    router = admitted_router(services, prefix=_PATH, tag="files", body_bytes_max=body_bytes_max)
    _add_upload(router, services)
    _add_announcement(router, services)
    _add_list(router, services)
    _add_file(router, services)
    return router


def _add_upload(router: APIRouter, services: Services) -> None:
    """Add the route that uploads a file."""

    @router.post("", response_model=FileObject, openapi_extra={"requestBody": form_description()})
    async def create_file(request: Request, principal: Caller) -> Response:
        """Upload a file as a form.

        With an Idempotency-Key, a repeated upload within a day is stored only once.
        """
        files = _store(services)
        upload = read_upload(
            await request.body(),
            request.headers["content-type"],
            principal,
            bytes_max=files.caps.file_bytes_max,
        )
        key = request.headers.get(_CLAIM_HEADER)
        if key is None:
            headers: dict[str, str] = {}
            body = await _create(services, files, upload)
        else:
            claim = upload.claim(key, request_id_of(request.scope))
            body, headers = await _create_once(services, files, upload, claim)
        headers |= await _usage_headers(services, files, principal)
        return Response(body, media_type="application/json", headers=headers)


def _add_announcement(router: APIRouter, services: Services) -> None:
    """Add the route that announces a file."""

    @router.post("/presigned")
    async def announce_file(
        request: Request, announcement: PresignedBody, principal: Caller
    ) -> PresignedObject:
        """Announce a file, and get the URL to which its content is sent by PUT.

        The content is checked when the file is first read: a file that differs from its
        announcement is removed.
        """
        files = _store(services)
        check_size(announcement.bytes, files.caps.file_bytes_max, "bytes")
        filename = clean_filename(announcement.filename)
        media_type = announcement.media_type or guess_media_type(filename)
        new = announcement.new_file(principal, filename, media_type)
        announced = await files.announce(await services.for_workspace(new), announcement.bytes)
        if announced is None:
            raise invalid_request(
                "This host stores files in a folder, which has no upload addresses; use POST "
                "/v1/files."
            )
        # A host that receives content itself signs URLs without a host name, which is taken from
        # the request.
        return PresignedObject.of(*announced, base_url=str(request.base_url))


def _add_list(router: APIRouter, services: Services) -> None:
    """Add the route that lists files."""

    @router.get("", response_model=FileList)
    async def list_files(
        principal: Caller,
        own: OwnThings,
        *,
        purpose: FilePurpose | None = None,
        limit: Annotated[int, Query(ge=1, le=_LIMIT_MAX)] = _LIMIT_DEFAULT,
        after: Annotated[str | None, Query(max_length=64, description="the id of a file")] = None,
        order: Literal["asc", "desc"] = "desc",
        member: Annotated[
            str | None, Query(max_length=128, description="the member who owns the files")
        ] = None,
    ) -> Response:
        """List the files that the caller can access, by the time of their upload.

        A page has at most 1,000 files, even if `limit` is higher.
        """
        files = _store(services)
        if member is not None and not own.has_member(member):
            raise permission_denied("You may list only your own files.", "member")
        page = await files.page(
            principal.workspace_id,
            limit=limit,
            after=after,
            purpose=purpose,
            reach=own.reach if member is None else OwnerScope(owner=member),
            oldest_first=order == "asc",
        )
        shown = FileList(
            data=[FileObject.of(file) for file in page.found],
            first_id=page.found[0].id if page.found else None,
            last_id=page.found[-1].id if page.found else None,
            has_more=page.next is not None,
            unreadable=list(page.unreadable),
        )
        headers = await _usage_headers(services, files, principal)
        return Response(shown.model_dump_json(), media_type="application/json", headers=headers)


def _add_file(router: APIRouter, services: Services) -> None:
    """Add the routes of one file."""

    @router.get("/{file_id}")
    async def show_file(own: OwnThings, file_id: str) -> FileObject:
        """Show a file of this workspace."""
        return FileObject.of(await _find(_store(services), own, file_id))

    @router.delete("/{file_id}")
    async def delete_file(own: OwnThings, by: By, file_id: str) -> DeletedFile:
        """Delete a file and its content."""
        files = _store(services)
        if not own.is_all:
            await _find(files, own, file_id)
        await services.check_file_holds(own.workspace_id, file_id)
        if not await files.delete(own.workspace_id, file_id, by=by):
            raise _not_found()
        return DeletedFile(id=file_id)

    @router.get("/{file_id}/content", responses=_CONTENT, response_class=Response)
    async def download_file(principal: Caller, own: OwnThings, by: By, file_id: str) -> Response:
        """Download a file: a deployment redirects to its bucket, other hosts send the content."""
        files = _store(services)
        file = await _find(files, own, file_id)
        found = await files.download(file)
        if found is None:
            raise _not_found()
        await services.note_read(principal, "file", file_id, by=by)
        return content_reply(file, found)


def content_reply(file: StoredFile, found: FileDownload) -> Response:
    """Return the reply with a file's content, or the redirect to its bucket."""
    if found.path is not None:
        return FileResponse(
            found.path,
            media_type=file.media_type,
            filename=file.filename,
            headers={**_PRIVATE, "x-content-type-options": "nosniff"},
        )
    return RedirectResponse(str(found.url), status_code=302, headers=_PRIVATE)


async def _find(files: FileStore, own: Own, file_id: str) -> StoredFile:
    """Return a file that the caller can access; raise RequestError(not_found) if there is none."""
    file = await files.get(own.workspace_id, file_id)
    if file is None or not own.has_file(file):
        raise _not_found()
    return file


async def _create(services: Services, files: FileStore, upload: Upload) -> bytes:
    """Store a file; return the reply."""
    file = await files.create(await services.for_workspace(upload.file), upload.content)
    return FileObject.of(file).model_dump_json().encode()


async def _create_once(
    services: Services, files: FileStore, upload: Upload, claim: Claim
) -> tuple[bytes, dict[str, str]]:
    """Store a file, or find the reply that is stored for the claim; return the reply and its
    headers.
    """
    answers = services.answers
    if answers is None:
        raise invalid_request(
            "Idempotency-Key needs stored replies, and this deployment stores none."
        )
    stored_reply = await answers.claim(claim)
    if stored_reply is not None:
        return stored_reply, {_REPLAY_HEADER: "true"}
    try:
        body = await _create(services, files, upload)
    except GatewayError:
        await answers.release(claim)
        raise
    try:
        await answers.keep(claim, body)
    except GatewayError as failed:
        # The file is stored, so its uploader must get the id even if the reply is not stored.
        _log.warning("the reply to the claim %s is not stored: %s", claim.key_hash, failed)
    return body, {}


async def _usage_headers(
    services: Services, files: FileStore, principal: Principal
) -> dict[str, str]:
    usage = await files.usage(principal.workspace_id)
    is_funded = await services.is_funded(principal.workspace_id)
    cap = files.caps.of_workspace(is_funded=is_funded)
    return {
        **_PRIVATE,
        "x-files-used": str(usage.files),
        "x-files-limit": str(cap.files_max),
        "x-storage-used-bytes": str(usage.size_bytes),
        "x-storage-limit-bytes": str(cap.bytes_max),
    }


def _store(services: Services) -> FileStore:
    """Return the store of files; raise RequestError if the deployment has none."""
    if services.files is None:
        raise not_found("This deployment has no bucket for files.")
    return services.files


def _not_found() -> RequestError:
    """Return the refusal for an unknown id, which is the same as for an id of another workspace."""
    return not_found("There is no such file in this workspace.", _PARAM)
