"""Exception classes of AWS services, wherever an answer names one, beyond what a status says."""

from typing import Final

# The statuses that the service model of bedrock-runtime gives its exceptions, for those that come
# inside a stream and have none of their own.
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

# Classes whose own status, often 400, does not say what they are.
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
    """Return the status that an exception of this class has as a reply, None if unknown."""
    return _STATUS.get(class_)


def code_of(class_: str) -> str:
    """Return a class as a code of `refusals`, which decides whose fault it is."""
    return _CODE.get(class_, class_)
