"""Downloads of the command line, which the gateway redirects to its bucket."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from typing_extensions import override

from tollgate.cli.gateway.http import Api


@contextmanager
def serving(location: str | None, authorizations: list[str | None]) -> Iterator[str]:
    """Serve a redirect to a location, or some content, and note the keys that arrive."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            authorizations.append(self.headers["authorization"])
            self.send_response(200 if location is None else 302)
            if location is not None:
                self.send_header("location", location)
            self.end_headers()
            if location is None:
                self.wfile.write(b"content")

        @override
        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_download_sends_its_key_to_the_gateway_alone() -> None:
    at_gateway: list[str | None] = []
    at_bucket: list[str | None] = []
    with serving(None, at_bucket) as bucket, serving(f"{bucket}/file", at_gateway) as gateway:
        client = Api(gateway, "sk-tg-1")
        assert b"".join(client.download("/files/file-1/content")) == b"content"
    assert at_gateway == ["Bearer sk-tg-1"]
    assert at_bucket == [None]
