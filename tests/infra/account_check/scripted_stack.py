"""A deployed stack on loopback: its gateway over HTTP, and AWS as recorded replies of botocore."""

import json
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
from botocore.stub import Stubber

from infra.account_check.chat_function import ChatFunction
from infra.account_check.probes import Subject
from tests.scripted_gateway import EVENTS
from tollgate.cli.stack.probe import Probe


@dataclass(frozen=True)
class Reply:
    """One answer of the gateway; an error code makes it an error in OpenAI's envelope."""

    status: int = 200
    body: bytes = b"".join(EVENTS)
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def error(cls, status: int, code: str, **headers: str) -> "Reply":
        body = json.dumps({"error": {"code": code, "message": "no"}}).encode()
        return cls(status, body, {name.replace("_", "-"): it for name, it in headers.items()})


class MovingClock:
    """Time passes by looking at it, and by sleeping."""

    def __init__(self, tick_s: float = 0.1) -> None:
        self._now_s = 1_000_000.0
        self._tick_s = tick_s
        self.slept_s: list[float] = []

    def now_s(self) -> float:
        return self._now_s

    def monotonic_s(self) -> float:
        self._now_s += self._tick_s
        return self._now_s

    async def sleep(self, delay_s: float) -> None:
        self.slept_s.append(delay_s)
        self._now_s += delay_s


class ScriptedAws:
    """Real clients of boto3 that answer with enqueued replies, in order, and send nothing."""

    def __init__(self) -> None:
        self._clients = {
            name: boto3.client(
                name,
                region_name="us-east-1",
                aws_access_key_id="synthetic",
                aws_secret_access_key="synthetic",
            )
            for name in ("lambda", "logs", "cloudformation")
        }
        self._stubs = {name: Stubber(client) for name, client in self._clients.items()}
        for logical_id, name in (("ChatFunction", "chat-1"), ("ChatLogs", "/logs/chat")):
            self.expect(
                "cloudformation",
                "describe_stack_resource",
                {"StackName": "tollgate", "LogicalResourceId": logical_id},
                {"StackResourceDetail": _resource(logical_id, name)},
            )
        for stub in self._stubs.values():
            stub.activate()

    def client(self, service: str) -> Any:
        return self._clients[service]

    def expect(
        self, service: str, call: str, given: dict[str, Any], answer: dict[str, Any]
    ) -> None:
        """Answer the next call of the service, which must be this one."""
        self._stubs[service].add_response(call, answer, given)

    def refuse(self, service: str, call: str, code: str) -> None:
        """Refuse the next call of the service, which must be this one."""
        self._stubs[service].add_client_error(call, code)

    def assert_all_called(self) -> None:
        for stub in self._stubs.values():
            stub.assert_no_pending_responses()


@dataclass
class ScriptedStack:
    """What the gateway answers next; the last reply is repeated."""

    aws: ScriptedAws
    clock: MovingClock
    subject: Subject
    replies: deque[Reply]
    attempts: list[str | None] = field(default_factory=lambda: [None])
    asked: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, *replies: Reply) -> None:
        self.replies.extend(replies)


def _resource(logical_id: str, physical_id: str) -> dict[str, object]:
    return {
        "LogicalResourceId": logical_id,
        "PhysicalResourceId": physical_id,
        "ResourceType": "AWS::Any::Thing",
        "LastUpdatedTimestamp": 0,
        "ResourceStatus": "CREATE_COMPLETE",
    }


@contextmanager
def scripted_stack(keyless: tuple[str, str] | None = None) -> Iterator[ScriptedStack]:
    """Serve until the block ends; every recorded reply of AWS must then have been asked for."""
    aws, clock = ScriptedAws(), MovingClock()
    replies: deque[Reply] = deque()
    attempts: list[str | None] = [None]
    asked: list[dict[str, Any]] = []
    with _served(replies, attempts, asked) as url:
        subject = Subject(
            probe=Probe(f"{url}/api/v1", "sk-tg-synthetic", clock),
            function=ChatFunction(aws.client, "tollgate"),
            formation=aws.client("cloudformation"),
            stack="tollgate",
            clock=clock,
            model="fast",
            keyless=keyless,
            signed=(("a/one", "bedrock-chat"), ("a/two", "bedrock-mantle")),
        )
        yield ScriptedStack(aws, clock, subject, replies, attempts, asked)
    aws.assert_all_called()


@contextmanager
def _served(
    replies: deque[Reply], attempts: Sequence[str | None], asked: list[dict[str, Any]]
) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            shown = [{"error": error} for error in attempts]
            record = {"data": {"provider_responses": shown}}
            self._reply(Reply(200, json.dumps(record).encode()))

        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self._reply(replies.popleft() if len(replies) > 1 else replies[0])

        def _reply(self, reply: Reply) -> None:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(reply.body)
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing: pytest's output is not an access log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
