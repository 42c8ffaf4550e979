"""A reader of documents within this process, which counts what it reads."""

from tollgate.core.documents.reading import (
    ReadDocument,
    ReadFault,
    ReadingRequest,
    ReadingShare,
    ReadingTask,
)
from tollgate.reading.read import perform


class InlineReader:
    """Implements `DocumentReader`; `failure` is raised in place of reading."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.tasks: list[ReadingTask] = []
        self.failure = failure

    async def read(
        self, content: bytes, media_type: str, task: ReadingTask, share: ReadingShare
    ) -> ReadDocument:
        self.tasks.append(task)
        if self.failure is not None:
            raise self.failure
        reply = perform(
            ReadingRequest(media_type=media_type, task=task, content=content, bytes_max=10**9)
        )
        if isinstance(reply, ReadFault):
            raise reply.error
        return ReadDocument(pages=reply.pages, pages_total=reply.pages_total, title=reply.title)
