"""The HTTP status for each type of Anthropic's errors, for those without a status of a reply."""

from typing import Final

# Errors in streams and in batches: https://platform.claude.com/docs/en/api/errors (seen 2026-11-21)
STATUS_OF_TYPE: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
