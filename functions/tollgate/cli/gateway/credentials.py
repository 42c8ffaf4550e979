"""The user's sessions with gateways, in a file that only the user may read."""

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
import msgspec
from msgspec import Struct

_FILE: Final = "credentials.json"
_LOCK: Final = "credentials.lock"


class Credential(Struct, frozen=True, kw_only=True):
    """The access token of a session, and the refresh token for the next session."""

    access_token: str
    expires_s: int
    """Unix second at which the access token expires."""
    lifetime_s: int
    """Seconds of validity when the access token was issued."""
    refresh_token: str | None = None


class CredentialFile:
    """The file with one credential for each gateway's address."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / _FILE

    def find(self, gateway: str) -> Credential | None:
        """Return the credential for a gateway, or None."""
        return self._read().get(gateway)

    def put(self, gateway: str, credential: Credential) -> None:
        """Store or replace the credential for a gateway."""
        self._write({**self._read(), gateway: credential})

    def drop(self, gateway: str) -> None:
        """Delete the credential for a gateway."""
        self._write(
            {name: credential for name, credential in self._read().items() if name != gateway}
        )

    def _read(self) -> dict[str, Credential]:
        try:
            handle = os.open(self._file, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return {}
        except OSError as failed:
            raise click.ClickException(f"{self._file}: {failed.strerror}") from failed
        with open(handle, "rb") as file:
            if stat.S_IMODE(os.fstat(handle).st_mode) & 0o077:
                raise click.ClickException(
                    f"{self._file} may be read by others: run `chmod 600 {self._file}`, then "
                    "sign in again, because somebody may have copied it."
                )
            try:
                return msgspec.json.decode(file.read(), type=dict[str, Credential])
            except msgspec.DecodeError as broken:
                raise click.ClickException(
                    f"{self._file} is not valid; delete it, then sign in again."
                ) from broken

    def _write(self, credentials: dict[str, Credential]) -> None:
        written = self._file.with_suffix(".part")
        written.unlink(missing_ok=True)
        handle = os.open(written, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(msgspec.to_builtins(credentials), file)
        written.replace(self._file)


@contextmanager
def open_credentials() -> Iterator[CredentialFile]:
    """Yield the user's credentials, locked so that a refresh token is used only once."""
    folder = Path(click.get_app_dir("tollgate"))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as failed:
        raise click.ClickException(
            f"A sign-in cannot be stored in {folder}: {failed.strerror}. Set TOLLGATE_KEY, or "
            "set XDG_CONFIG_HOME to a folder that you may write."
        ) from failed
    with open(handle, "rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield CredentialFile(folder)
