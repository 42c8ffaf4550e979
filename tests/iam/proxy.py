"""AWS's endpoint for functions: it decides each request by its signer's role, then forwards it.

A refusal has the form of its service: "Common errors" of the DynamoDB, Secrets Manager and SNS API
references, "Error responses" of S3, "Common error types" of Bedrock (seen 2026-11-22).
"""

import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

import aiohttp
from aiohttp import web
from typing_extensions import override
from yarl import URL

from tests.iam.calls import (
    Call,
    Signature,
    UnknownCall,
    bucket_listing,
    read_accesses,
    read_signature,
)
from tests.iam.policy import Access, Statement, decide
from tests.loopback import LocalProxy

# The emulator names a function's access keys after it.
_ACCESS_KEY: Final = re.compile(r"ASIA([A-Z]+?)\d{8}")
_NOT_FORWARDED: Final = frozenset({"connection", "content-length", "host", "transfer-encoding"})
_OF_A_SIGNATURE: Final = re.compile(r"(^|&)(X-Amz-|response-)[^&]*")
_NOT_RETURNED: Final = frozenset({"connection", "content-length", "transfer-encoding", "date"})
_JSON_SERVICES: Final = {
    "dynamodb": "application/x-amz-json-1.0",
    "kms": "application/x-amz-json-1.1",
    "secretsmanager": "application/x-amz-json-1.1",
    "sqs": "application/x-amz-json-1.0",
}


class AuthorisingProxy(LocalProxy):
    """Forwards what the roles allow to `targets`, by service.

    `refusals` says each request that was refused. `accesses` has what functions were allowed, each
    beside its function's name.
    """

    def __init__(
        self, roles: Mapping[str, Sequence[Statement]], targets: Mapping[str, str]
    ) -> None:
        super().__init__()
        self.refusals: list[str] = []
        self.accesses: set[tuple[str, Access]] = set()
        self.roles = roles
        self._targets = targets

    def take_refusals(self) -> list[str]:
        """Return the refusals so far, which then no longer count."""
        taken = list(self.refusals)
        self.refusals.clear()
        return taken

    @override
    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("expect", "").lower() == "100-continue":
            # A client of S3 asks before it sends a content (RFC 9110, 10.1.1).
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        call = Call(
            method=request.method,
            path=request.raw_path.partition("?")[0],
            query=request.raw_path.partition("?")[2],
            headers={name.lower(): value for name, value in request.headers.items()},
            # `request.read()` stops at 1 MiB, and objects may be longer.
            body=await request.content.read(),
        )
        signature = None
        try:
            signature = read_signature(call)
            refusal = self._decide(signature, read_accesses(call, signature))
        except UnknownCall as unknown:
            refusal = f"nothing is known of {unknown}"
        if signature is None or refusal is not None:
            return self._refuse(signature, refusal or "")
        return await self._forward(request, call, signature)

    def _decide(self, signature: Signature, accesses: Sequence[Access]) -> str | None:
        """Return why a request is refused, None if it is not; note what it is allowed."""
        found = _ACCESS_KEY.fullmatch(signature.access_key_id)
        function = found[1].lower() if found is not None else ""
        if function not in self.roles:
            return f"no function has the access key {signature.access_key_id}"
        decisions = [decide(self.roles[function], access) for access in accesses]
        refusals = [it.refusal for it in decisions if it.refusal is not None]
        if refusals or not decisions:
            return f"{function}: {'; '.join(refusals) or 'it needs nothing'}"
        self.accesses |= {(function, access) for access in accesses}
        return None

    async def _forward(
        self, request: web.BaseRequest, call: Call, signature: Signature
    ) -> web.StreamResponse:
        target = self._targets[signature.service].rstrip("/")
        # A signature in the address has been read; ministack would look for its key, and takes no
        # headers of the reply from those without one.
        query = _OF_A_SIGNATURE.sub("", call.query).strip("&")
        url = URL(f"{target}{call.path}{'?' if query else ''}{query}", encoded=True)
        headers = {it: value for it, value in call.headers.items() if it not in _NOT_FORWARDED}
        # aiohttp warns of bytes beyond 1 MiB.
        data = io.BytesIO(call.body) if call.body else None
        try:
            async with self.client.request(
                call.method, url, data=data, headers=headers, allow_redirects=False
            ) as answer:
                body = await answer.read()
        except aiohttp.ClientError:
            # The caller sees what the service did: a connection that ends without an answer.
            assert request.transport is not None
            request.transport.abort()
            return web.Response(status=502)
        if signature.service == "s3" and answer.status == 404:
            refusal = self._decide(signature, (bucket_listing(call),))
            if refusal is not None:
                return self._refuse(signature, refusal)
        kept = [it for it in answer.headers.items() if it[0].lower() not in _NOT_RETURNED]
        return web.Response(status=answer.status, body=body, headers=dict(kept))

    def _refuse(self, signature: Signature | None, refusal: str) -> web.Response:
        self.refusals.append(refusal)
        service = signature.service if signature is not None else ""
        message = f"User is not authorized to perform this: {refusal}"
        if service in _JSON_SERVICES:
            content = {"__type": "AccessDeniedException", "Message": message}
            media_type = _JSON_SERVICES[service]
            return web.Response(status=400, text=json.dumps(content), content_type=media_type)
        if service.startswith("bedrock"):
            named = {"x-amzn-ErrorType": "AccessDeniedException"}
            return web.json_response({"message": message}, status=403, headers=named)
        code = "AuthorizationError" if service == "sns" else "AccessDenied"
        text = f"<Error><Code>{code}</Code><Message>Access Denied</Message></Error>"
        if service == "sns":
            text = f"<ErrorResponse>{text}</ErrorResponse>"
        return web.Response(status=403, text=text, content_type="application/xml")
