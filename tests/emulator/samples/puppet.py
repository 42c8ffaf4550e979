"""A Lambda runtime that does what the request tells it, byte by byte, well or badly; stdlib only.

The event's body is `{"steps": [[verb, argument], ...]}`:

- send TEXT: to the current connection, opened when needed; {id}, {invocation}, {host} are filled in
- read _: the status line of the answer goes to standard output; the connection is kept
- close _: the connection
- wait NAME: tell the gate the name and block until it answers
- call [METHOD, PATH]: a Runtime API call of its own; its status goes to standard output
- exit CODE, hang _
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import sys

API = os.environ["AWS_LAMBDA_RUNTIME_API"]
NEXT = "/2018-06-01/runtime/invocation/next"


class Puppet:
    def __init__(self, headers: http.client.HTTPMessage) -> None:
        self.names = {
            "{id}": headers["Lambda-Runtime-Aws-Request-Id"],
            "{invocation}": headers["Lambda-Runtime-Invocation-Id"],
            "{host}": API,
        }
        self.connection: socket.socket | None = None

    def fill(self, text: str) -> str:
        for name, value in self.names.items():
            text = text.replace(name, value)
        return text

    def send(self, text: str) -> None:
        if self.connection is None:
            host, port = API.split(":")
            self.connection = socket.create_connection((host, int(port)))
        self.connection.sendall(self.fill(text).encode("latin-1"))

    def read(self, _: object) -> None:
        assert self.connection is not None
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.connection.recv(65536)
        print("answer", answer.split(b" ")[1].decode(), flush=True)

    def close(self, _: object) -> None:
        assert self.connection is not None
        self.connection.close()
        self.connection = None

    def wait(self, name: str) -> None:
        with socket.create_connection(("127.0.0.1", int(os.environ["GATE_PORT"]))) as gate:
            gate.sendall(name.encode() + b"\n")
            gate.recv(1)

    def call(self, target: list[str]) -> None:
        method, path = target
        connection = http.client.HTTPConnection(API)
        connection.request(method, self.fill(path), body=b"{}" if method == "POST" else None)
        print("call", connection.getresponse().status, flush=True)
        connection.close()

    def exit(self, code: int) -> None:
        sys.stdout.flush()
        os._exit(code)

    def hang(self, _: object) -> None:
        signal.pause()


def main() -> None:
    print("argv", json.dumps(sys.argv), flush=True)
    connection = http.client.HTTPConnection(API)
    while True:
        connection.request("GET", NEXT)
        answer = connection.getresponse()
        event = json.loads(answer.read())
        puppet = Puppet(answer.headers)
        for verb, argument in json.loads(event["body"])["steps"]:
            getattr(puppet, verb)(argument)


if __name__ == "__main__":
    main()
