"""The maximum length of an identity token, which routes and sign-ins share."""

from typing import Final

TOKEN_LENGTH_MAX: Final = 16_384
