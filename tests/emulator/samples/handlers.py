"""Plain Lambda handlers for an unmodified awslambdaric."""

from __future__ import annotations

import json
import signal
from typing import Any


def handle(event: dict[str, Any], context: Any) -> object:
    """Reply with what the body asks for; without a body, with the event itself."""
    asked = json.loads(event["body"]) if event["body"] else {}
    if "raise" in asked:
        raise RuntimeError(asked["raise"])
    if "hang" in asked:
        signal.pause()
    if "reply" in asked:
        return asked["reply"]
    if "repeat" in asked:
        return {"statusCode": 200, "body": "x" * asked["repeat"]}
    seen = {"event": event, "request_id": context.aws_request_id}
    return {"statusCode": 200, "body": json.dumps(seen)}
