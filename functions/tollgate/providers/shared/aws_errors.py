"""Exception classes of AWS services, which say more about an error than its status."""

from typing import Final

# The statuses that the service model of bedrock-runtime gives to its exceptions; needed for
# exceptions inside a stream, which have no status.
_STATUS: Final = {
    "accessdeniedexception": 403,
    "internalserverexception": 500,
    "modelerrorexception": 424,
    "modelnotreadyexception": 429,
    "modelstreamerrorexception": 424,
    "modeltimeoutexception": 408,
    "resourcenotfoundexception": 404,
    "servicequotaexceededexception": 400,
    "serviceunavailableexception": 503,
    "throttlingexception": 429,
    "validationexception": 400,
}

# Classes whose own status, often 400, does not tell the kind of error.
_CODE: Final = {
    "expiredtokenexception": "invalid_api_key",
    "incompletesignatureexception": "invalid_api_key",
    "invalidclienttokenid": "invalid_api_key",
    "invalidsignatureexception": "invalid_api_key",
    "missingauthenticationtokenexception": "invalid_api_key",
    "unrecognizedclientexception": "invalid_api_key",
    "servicequotaexceededexception": "rate_limit_exceeded",
}


def aws_class(name: str) -> str:
    """Return the bare class of `ns#Class:http://where/it/came/from`, in lower case."""
    return name.partition(":")[0].rpartition("#")[2].strip().lower()


def status_of(class_: str) -> int | None:
    """Return the HTTP status of this exception class, None if unknown."""
    return _STATUS.get(class_)


def code_of(class_: str) -> str:
    """Return the code of `refusals` for a class, which decides who is at fault."""
    return _CODE.get(class_, class_)
