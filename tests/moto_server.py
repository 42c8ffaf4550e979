"""moto's server on loopback: any AWS service, and one request at a time."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Any

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
            return list(self._app(environ, start_response))


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
