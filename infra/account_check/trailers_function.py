"""A Lambda function that answers every event with a stream that ends with error trailers.

This module replaces Lambda's runtime client, which imports it. The module is deployed as inline
text, so it may import only the standard library and must be shorter than 4,096 characters.
"""

import base64
import http.client
import json
import os
import socket

API = os.environ["AWS_LAMBDA_RUNTIME_API"]
ROOT = "/2018-06-01/runtime/invocation/"
KIND = "Lambda-Runtime-Function-Error-Type"
BODY = "Lambda-Runtime-Function-Error-Body"


def chunk(octets: bytes) -> bytes:
    """Return one encoded chunk."""
    return b"%x\r\n%b\r\n" % (len(octets), octets)


def answer(request_id: str) -> None:
    """Send the status, a line of text and the trailers, then read the acknowledgement."""
    head = (
        f"POST {ROOT}{request_id}/response HTTP/1.1\r\nHost: {API}\r\n"
        "Lambda-Runtime-Function-Response-Mode: streaming\r\nTransfer-Encoding: chunked\r\n"
        "Content-Type: application/vnd.awslambda.http-integration-response\r\n"
        f"Trailer: {KIND}, {BODY}\r\n\r\n"
    )
    prelude = json.dumps({"statusCode": 200, "headers": {"content-type": "text/plain"}}).encode()
    error = {"errorType": "Function.Probe", "errorMessage": "probe", "stackTrace": []}
    encoded = base64.b64encode(json.dumps(error).encode()).decode()
    trailers = f"0\r\n{KIND}: Function.Probe\r\n{BODY}: {encoded}\r\n\r\n"
    host, port = API.split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + chunk(prelude + bytes(8)) + chunk(b"begun\n"))
        connection.sendall(trailers.encode())
        connection.recv(4096)


while True:
    polling = http.client.HTTPConnection(API)
    polling.request("GET", ROOT + "next")
    event = polling.getresponse()
    event.read()
    polling.close()
    answer(event.headers["Lambda-Runtime-Aws-Request-Id"])
