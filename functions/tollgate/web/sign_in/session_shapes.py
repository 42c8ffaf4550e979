"""Bodies of `/v1/session`, which the API documents without importing the token verification."""

from pydantic import BaseModel, Field

from tollgate.core.principal import TOKEN_LENGTH_MAX, MemberRole
from tollgate.web.shapes import Body


class IdentityTokenBody(Body):
    """An identity token for which to open a session."""

    token: str = Field(
        min_length=1,
        max_length=TOKEN_LENGTH_MAX,
        description="an ID token, or an access token that is a JWT, of the configured issuer",
    )


class SessionObject(BaseModel):
    """The member that a caller is signed in as."""

    workspace_id: str
    member_id: str
    team_id: str | None
    role: MemberRole


class NewSessionReply(BaseModel):
    """A session with its secret, which is shown only once."""

    data: SessionObject
    key: str
    expires_in: int = Field(description="seconds")


class SessionReply(BaseModel):
    """The member that the caller is signed in as."""

    data: SessionObject


class ClosedSessionReply(BaseModel):
    """The end of a session; `closed` is false if it had ended before."""

    closed: bool
