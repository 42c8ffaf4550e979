"""The bound of identity tokens, which routes state and sign-ins keep."""

from typing import Final

TOKEN_LENGTH_MAX: Final = 16_384
