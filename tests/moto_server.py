"""moto's server on loopback: any AWS service, one request at a time, and conditional copies."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Any
from urllib.parse import unquote

from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID
from moto.server import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server


class _Isolated:
    """Answers one request at a time.

    Requests side by side see moto between the steps of another: a copy checks the ETag of one
    version and takes the content of the next.
    """

    def __init__(self) -> None:
        self._app = DomainDispatcherApplication(create_backend_app)
        self._turn = Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        with self._turn:
            if _has_another_source(environ):
                start_response("412 Precondition Failed", [("content-type", "text/xml")])
                return [b"<Error><Code>PreconditionFailed</Code></Error>"]
            return list(self._app(environ, start_response))


def _has_another_source(environ: dict[str, Any]) -> bool:
    """Return whether S3 would refuse a copy by `x-amz-copy-source-if-match`, which moto ignores."""
    wanted = environ.get("HTTP_X_AMZ_COPY_SOURCE_IF_MATCH")
    if wanted is None:
        return False
    bucket, _, key = unquote(environ["HTTP_X_AMZ_COPY_SOURCE"]).lstrip("/").partition("/")
    source = get_backend("s3")[DEFAULT_ACCOUNT_ID]["aws"].get_object(bucket, key)
    return source is not None and source.etag.strip('"') != wanted.strip('"')


@contextmanager
def running_moto() -> Iterator[str]:
    """Run a server and yield its URL; servers of one process share their accounts."""
    server = make_server(
        "127.0.0.1", 0, _Isolated(), threaded=True, request_handler=MotoRequestHandler
    )
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
