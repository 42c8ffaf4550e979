"""Bodies and replies of SCIM 2.0 (RFC 7643, 7644), as sent and read by identity providers."""

import re
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json, to_json
from starlette.responses import JSONResponse

from tollgate.core.errors import GatewayError, invalid_request
from tollgate.ingress.base import ErrorReply
from tollgate.ingress.errors import openai_reply
from tollgate.stores.ports.people import Member
from tollgate.stores.rules.level_settings import MemberSettings
from tollgate.web.http.paths import SCIM_JSON

_USER: Final = "urn:ietf:params:scim:schemas:core:2.0:User"
_LIST: Final = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
_ERROR: Final = "urn:ietf:params:scim:api:messages:2.0:Error"
# Okta looks users up by `userName`, Entra by `userName` or by work address.
_FILTER: Final = re.compile(
    r'\s*(userName|id|emails\[type eq "work"\]\.value)\s+eq\s+"([^"\\]{1,254})"\s*',
    re.IGNORECASE,
)


class ScimReply(JSONResponse):
    """A reply with SCIM's media type."""

    media_type = SCIM_JSON


class ScimEmail(BaseModel):
    """An e-mail address of a user."""

    model_config = ConfigDict(extra="ignore")

    value: str
    primary: bool = True


class ScimUser(BaseModel):
    """A member as a user. After its creation, only `active` can change; everything else is
    read-only.
    """

    schemas: list[str] = [_USER]
    id: str
    userName: str  # noqa: N815 - a name of RFC 7643
    displayName: str | None  # noqa: N815 - a name of RFC 7643
    emails: list[ScimEmail]
    active: bool
    meta: dict[str, str] = {"resourceType": "User"}

    @classmethod
    def of(cls, member: Member) -> "ScimUser":
        """Build the user from a stored member."""
        return cls(
            id=member.id,
            userName=member.email or member.id,
            displayName=member.display_name,
            emails=[] if member.email is None else [ScimEmail(value=member.email)],
            active=not member.disabled,
        )


class ScimUsers(BaseModel):
    """A page of users."""

    schemas: list[str] = [_LIST]
    totalResults: int  # noqa: N815 - a name of RFC 7644
    startIndex: int  # noqa: N815 - a name of RFC 7644
    itemsPerPage: int  # noqa: N815 - a name of RFC 7644
    Resources: list[ScimUser]


class ScimUserBody(BaseModel):
    """A whole user, to create or to replace."""

    model_config = ConfigDict(extra="ignore")

    userName: str = Field(min_length=1, max_length=128)  # noqa: N815 - a name of RFC 7643
    displayName: str | None = Field(None, max_length=100)  # noqa: N815 - a name of RFC 7643
    active: bool | None = Field(None, description="if omitted: unchanged, or true for a new user")

    def settings(self) -> MemberSettings:
        """Return the settings of a new member, whose role the sign-in file states later."""
        return MemberSettings(
            role="viewer",
            display_name=self.displayName or None,
            email=self.userName if "@" in self.userName else None,
            disabled=self.active is False,
        )


class ScimOperation(BaseModel):
    """One operation of a PATCH."""

    model_config = ConfigDict(extra="ignore")

    op: str
    path: str | None = None
    value: Any = None

    def active(self) -> bool | None:
        """Return the value that the operation gives to `active`; None if it gives none.

        Okta sends an object without a path; Entra sends a path with a boolean, a string, or a list.
        """
        value = self.value
        if self.op.lower() not in ("add", "replace"):
            return None
        if self.path is None and isinstance(value, dict):
            value = value.get("active")
        elif self.path is None or self.path.lower() != "active":
            return None
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
            value = value[0].get("value")
        if isinstance(value, str) and value.lower() in ("true", "false"):
            value = value.lower() == "true"
        if value is not None and not isinstance(value, bool):
            raise invalid_request("active must be a Boolean.", "active")
        return value


class ScimPatchBody(BaseModel):
    """Changes of a user; operations on read-only attributes are ignored."""

    model_config = ConfigDict(extra="ignore")

    schemas: list[Literal["urn:ietf:params:scim:api:messages:2.0:PatchOp"]]
    Operations: list[ScimOperation] = Field(min_length=1, max_length=100)

    def active(self) -> bool | None:
        """Return the value that the last operation on `active` sets."""
        given = [value for each in self.Operations if (value := each.active()) is not None]
        return given[-1] if given else None


def named_user(filter_: str) -> str:
    """Return the name, id or address in a filter; raise RequestError for any other filter."""
    found = _FILTER.fullmatch(filter_)
    if found is None:
        raise invalid_request(
            'Supported filters: userName eq "…", id eq "…", emails[type eq "work"].value eq "…".',
            "filter",
        )
    return found[2]


def scim_error(error: GatewayError, request_id: str) -> ErrorReply:
    """Return an error in the envelope of other routes, together with SCIM's fields."""
    usual = openai_reply(error, request_id)
    fields = {"schemas": [_ERROR], "status": str(usual.status), "detail": error.message}
    body = to_json({**from_json(usual.body), **fields})
    headers = {**usual.headers, "content-type": SCIM_JSON}
    return ErrorReply(status=usual.status, body=body, headers=headers)


def scim_conflict(detail: str) -> ScimReply:
    """Return the refusal of a user that exists already."""
    content = {"schemas": [_ERROR], "status": "409", "scimType": "uniqueness", "detail": detail}
    return ScimReply(content, 409)
