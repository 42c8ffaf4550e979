"""Servers that run batches in providers' forms, and lose, repeat and mix up results.

Of four requests, one has an answer, one has two, one failed and one has no result at all. The
results also contain some for requests that nobody sent.
"""

import json
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final

from aiohttp import web
from typing_extensions import override

from tests.loopback import LocalServer
from tests.provider_batches import reply

KEY: Final = "Bearer sk-secret"
ANSWERS: Final = (1, 2, 0, 0)
FAILS: Final = 2


class BatchServer(LocalServer):
    """Runs one batch, which ends at its second poll or when it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: Sequence[Any] = ()
        self.name: Any = None
        self.created = 0
        self.cancels = 0
        self.polls = 0
        self.loses_reply = False
        self.on_create: Callable[[], Awaitable[Any]] | None = None

    @override
    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        assert KEY in (request.headers.get("authorization"), self._google_key(request))
        content = await self.content(request)
        found = self.route(request.method, request.path.removeprefix("/v1"), content, request)
        if isinstance(found, web.Response):
            return found
        if found == "created":
            self.created += 1
            if self.on_create is not None:
                await self.on_create()
            if self.loses_reply:
                return web.json_response({}, status=500)
            found = self.batch()
        return web.json_response(found)

    async def content(self, request: web.BaseRequest) -> Any:
        """The body of a request, or the lines of an uploaded file."""
        if request.content_type == "multipart/form-data":
            form = await request.post()
            assert form["purpose"] == "batch"
            return form["file"].file.read()
        return await request.read()

    @abstractmethod
    def route(self, method: str, path: str, content: bytes, request: web.BaseRequest) -> Any:
        """Answer one request; return "created" if it created a batch."""

    @abstractmethod
    def batch(self) -> Any:
        """The batch as it is now."""

    @property
    def is_ended(self) -> bool:
        return self.cancels > 0 or self.polls > 1

    def upload(self, content: bytes) -> Any:
        self.requests = [json.loads(each) for each in content.splitlines()]
        return {"id": "file-in"}

    def poll(self) -> Any:
        self.polls += 1
        return self.batch()

    def cancel(self) -> Any:
        self.cancels += 1
        return self.batch()

    def answered(self) -> Iterator[tuple[str, str]]:
        """The id and the text of each answer."""
        name = self.read(self.requests[0])[0].rpartition("-")[0]
        yield f"{name}-999", "nobody's"
        yield "57KCys---AAAAAA-1", "of another batch"
        for number, asked in enumerate(self.requests):
            custom_id, text = self.read(asked)
            for _ in range(ANSWERS[number % 4]):
                yield custom_id, text

    def failed(self) -> Iterator[str]:
        """The ids of failed requests."""
        for asked in self.requests[FAILS::4]:
            yield self.read(asked)[0]

    def read(self, asked: Any) -> tuple[str, str]:
        """The id and the text of a request in OpenAI's form."""
        assert not {"stream", "stream_options"} & set(asked["body"])
        return asked["custom_id"], asked["body"]["messages"][0]["content"]

    @staticmethod
    def _google_key(request: web.BaseRequest) -> str:
        return f"Bearer {request.headers.get('x-goog-api-key')}"


class OpenAIServer(BatchServer):
    """OpenAI's form, as Groq and DashScope have it: their lists have no `has_more`."""

    @override
    def route(self, method: str, path: str, content: bytes, request: web.BaseRequest) -> Any:
        match method, path:
            case "POST", "/files":
                return self.upload(content)
            case "POST", "/batches":
                body = json.loads(content)
                assert body["endpoint"] == self.requests[0]["url"] == "/v1/chat/completions"
                self.name = body["metadata"]
                return "created"
            case "GET", "/batches":
                return {"object": "list", "data": [{"id": "other"}, self.batch()]}
            case "GET", "/batches/b":
                return self.poll()
            case "POST", "/batches/b/cancel":
                return self.cancel()
            case "GET", "/files/out/content":
                return lines(
                    {"custom_id": custom_id, "response": {"status_code": 200, "body": _chat(text)}}
                    for custom_id, text in self.answered()
                )
            case "GET", "/files/err/content":
                error = {"error": {"message": "Too many."}}
                return lines(
                    {"custom_id": custom_id, "response": {"status_code": 429, "body": error}}
                    for custom_id in self.failed()
                )
        raise AssertionError((method, path))

    @override
    def batch(self) -> Any:
        status = "cancelled" if self.cancels else "completed" if self.is_ended else "in_progress"
        files = {"output_file_id": "out", "error_file_id": "err"} if self.is_ended else {}
        return {"id": "b", "status": status, "metadata": self.name, **files}


class MistralServer(OpenAIServer):
    """Mistral's form."""

    @override
    def route(self, method: str, path: str, content: bytes, request: web.BaseRequest) -> Any:
        match method, path:
            case "POST", "/batch/jobs":
                self.name = json.loads(content)["metadata"]
                return "created"
            case "GET", "/batch/jobs":
                return {"data": [self.batch()]}
            case _:
                path = path.replace("/batch/jobs/b", "/batches/b")
                return super().route(method, path, content, request)

    @override
    def batch(self) -> Any:
        status = "CANCELLED" if self.cancels else "SUCCESS" if self.is_ended else "RUNNING"
        files = {"output_file": "out", "error_file": "err"} if self.is_ended else {}
        return {"id": "b", "status": status, "metadata": self.name, **files}


class XaiServer(BatchServer):
    """xAI's form, whose results come in pages."""

    @override
    def route(self, method: str, path: str, content: bytes, request: web.BaseRequest) -> Any:
        token = request.query.get("pagination_token")
        match method, path:
            case "POST", "/files":
                return self.upload(content)
            case "POST", "/batches":
                body = json.loads(content)
                assert body["input_file_id"] == "file-in"
                self.name = body["name"]
                return "created"
            case "GET", "/batches":
                if token is None:
                    return {"batches": [{"batch_id": "other"}], "pagination_token": "next"}
                return {"batches": [self.batch()]}
            case "GET", "/batches/b":
                return self.poll()
            case "POST", "/batches/b:cancel":
                return self.cancel()
            case "GET", "/batches/b/results":
                results, first, size = self._results(), int(token or 0), int(request.query["limit"])
                more = str(first + size) if first + size < len(results) else None
                return {"results": results[first : first + size], "pagination_token": more}
        raise AssertionError((method, path))

    def _results(self) -> Sequence[Any]:
        error = "Batch cancelled" if self.cancels else "The image could not be fetched."
        rows = [
            (custom_id, {"response": {"chat_get_completion": _chat(text)}})
            for custom_id, text in self.answered()
        ]
        rows += [(custom_id, {"error": error}) for custom_id in self.failed()]
        return [{"batch_request_id": key, "batch_result": result} for key, result in rows]

    @override
    def batch(self) -> Any:
        count = len(self.requests)
        counts = {"num_requests": count, "num_pending": 0 if self.is_ended else count}
        cancelled = {"cancel_time": "2026-11-21"} if self.cancels else {"cancel_time": None}
        return {"batch_id": "b", "name": self.name, "state": counts, **cancelled}


class GeminiServer(BatchServer):
    """Gemini's form."""

    @override
    def route(self, method: str, path: str, content: bytes, request: web.BaseRequest) -> Any:
        match method, path:
            case "POST", "/upload/v1beta/files":
                return web.Response(headers={"x-goog-upload-url": f"{self.url}/v1/upload/u"})
            case "POST", "/upload/u":
                self.upload(content)
                return {"file": {"name": "files/in"}}
            case "POST", "/v1beta/models/l:batchGenerateContent":
                self.name = json.loads(content)["batch"]["displayName"]
                return "created"
            case "GET", "/v1beta/batches":
                return {"operations": [{"name": "batches/other"}, self.batch()]}
            case "GET", "/v1beta/batches/b":
                return self.poll()
            case "POST", "/v1beta/batches/b:cancel":
                return self.cancel()
            case "GET", "/download/v1beta/files/r:download":
                answers = [{"key": key, "response": _said(text)} for key, text in self.answered()]
                errors = [
                    {"key": key, "error": {"code": 8, "message": "Too many."}}
                    for key in self.failed()
                ]
                return lines(answers + errors)
        raise AssertionError((method, path))

    @override
    def read(self, asked: Any) -> tuple[str, str]:
        return asked["key"], asked["request"]["contents"][0]["parts"][0]["text"]

    @override
    def batch(self) -> Any:
        state = "CANCELLED" if self.cancels else "SUCCEEDED" if self.is_ended else "RUNNING"
        files = {"response": {"responsesFile": "files/r"}} if self.is_ended else {}
        metadata = {"state": f"BATCH_STATE_{state}", "displayName": self.name}
        return {"name": "batches/b", "metadata": metadata, **files}


def lines(found: Any) -> web.Response:
    """A file of lines."""
    body = b"".join(json.dumps(each).encode() + b"\n" for each in found)
    return web.Response(body=body, content_type="application/octet-stream")


def _chat(text: str) -> Any:
    return json.loads(reply(text))


def _said(text: str) -> Any:
    candidate = {"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "l"}


SERVERS: Final[dict[str, type[BatchServer]]] = {
    "openai": OpenAIServer,
    "mistral": MistralServer,
    "xai": XaiServer,
    "gemini": GeminiServer,
}
