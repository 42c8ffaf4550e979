"""Routes that list, show, download and delete videos, in the format of OpenAI's clients.

openai-python 3.52.0, resources/videos.py (2026-11-28).
"""

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from tollgate.core.errors import RequestError, invalid_request, not_found
from tollgate.core.records.subjects import on_hold
from tollgate.core.videos import Video, VideoVariant
from tollgate.ingress.formats import VIDEOS
from tollgate.ingress.work.videos.format import show_video
from tollgate.ingress.work.videos.models import VideoObject
from tollgate.stores.ports.batches import BatchPlace, VideoServices
from tollgate.web.admission import By, Caller, OwnThings, admitted_router
from tollgate.web.files.file_routes import content_reply
from tollgate.web.own import Own
from tollgate.web.services import Services

_LIMIT_MAX: Final = 100
_LIMIT_DEFAULT: Final = 20
_PARAM: Final = "video_id"
_CONTENT: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The video or one of its pictures.",
        "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
    },
    302: {"description": "The URL of the content, which is valid for minutes."},
}


class VideoList(BaseModel):
    """A page of videos."""

    object: Literal["list"] = "list"
    data: list[VideoObject]
    first_id: str | None
    last_id: str | None
    has_more: bool
    unreadable: list[str]


class DeletedVideo(BaseModel):
    """The confirmation that a video was deleted."""

    id: str
    object: Literal["video.deleted"] = "video.deleted"
    deleted: Literal[True] = True


def video_routes(services: Services) -> APIRouter:
    """Return the routes below `/v1/videos`, except the one that creates a video."""
    router = admitted_router(services, prefix=VIDEOS.path, tag=VIDEOS.tag)
    _add_list(router, services)
    _add_video(router, services)
    return router


def _add_list(router: APIRouter, services: Services) -> None:
    @router.get("")
    async def list_videos(
        own: OwnThings,
        *,
        limit: Annotated[int, Query(ge=1, le=_LIMIT_MAX)] = _LIMIT_DEFAULT,
        after: Annotated[str | None, Query(max_length=64, description="the id of a video")] = None,
        order: Literal["asc", "desc"] = "desc",
    ) -> VideoList:
        """List the videos that the caller may reach, by the time of their creation."""
        page = await _stores(services).store.page(
            own.workspace_id,
            limit=limit,
            after=after,
            reach=own.reach,
            oldest_first=order == "asc",
        )
        return VideoList(
            data=[show_video(video) for video in page.found],
            first_id=page.found[0].id if page.found else None,
            last_id=page.found[-1].id if page.found else None,
            has_more=page.next is not None,
            unreadable=list(page.unreadable),
        )


def _add_video(router: APIRouter, services: Services) -> None:
    @router.get("/{video_id}")
    async def show(own: OwnThings, video_id: str) -> VideoObject:
        """Show a video with its status."""
        return show_video(await _find(services, own, video_id))

    @router.get("/{video_id}/content", responses=_CONTENT, response_class=Response)
    async def download_video(
        principal: Caller,
        own: OwnThings,
        by: By,
        video_id: str,
        *,
        variant: VideoVariant = "video",
    ) -> Response:
        """Download a completed video, or one of its pictures if the provider made them.

        A deployment on AWS redirects to its bucket; other hosts send the content.
        """
        video, files = await _find(services, own, video_id), services.files
        file_id = video.file_ids.get(variant) if video.status == "completed" else None
        if file_id is None or files is None:
            raise not_found(f"The video has no content `{variant}`.", "variant")
        file = await files.get(own.workspace_id, file_id)
        found = None if file is None else await files.download(file)
        if file is None or found is None:
            raise not_found("The content was deleted or has expired.", _PARAM)
        await services.note_read(principal, "file", file.id, by=by)
        return content_reply(file, found)

    @router.delete("/{video_id}")
    async def delete_video(own: OwnThings, by: By, video_id: str) -> DeletedVideo:
        """Delete a video that has ended, with its content."""
        video, files = await _find(services, own, video_id), services.files
        if not video.is_ended or files is None:
            raise invalid_request("A video can be deleted once it is completed or failed.", _PARAM)
        holds = await services.subjects.holds(video.workspace_id)
        if any(hold.subject.has_job(video) for hold in holds):
            raise on_hold()
        for file_id in video.file_ids.values():
            await services.check_file_holds(video.workspace_id, file_id)
            await files.delete(video.workspace_id, file_id, by=by)
        stores = _stores(services)
        await stores.requests.delete(video)
        if not await stores.store.delete(BatchPlace(video.workspace_id, video.id)):
            raise _no_video()
        return DeletedVideo(id=video.id)


def _stores(services: Services) -> VideoServices:
    if services.videos is None:
        raise not_found("This deployment has no bucket for videos.")
    return services.videos


async def _find(services: Services, own: Own, video_id: str) -> Video:
    """Return a video that the caller may reach; raise RequestError(not_found) for any other."""
    video = await _stores(services).store.get(BatchPlace(own.workspace_id, video_id))
    expired = video is not None and video.is_expired(services.clock.now_s())
    if video is None or expired or not own.reach.has(video.member_id):
        raise _no_video()
    return video


def _no_video() -> RequestError:
    """Return the refusal for an unknown id, which is the same as for another workspace's id."""
    return not_found("There is no such video in this workspace.", _PARAM)
