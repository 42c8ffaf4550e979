"""`tollgate login`, `token` and `logout`: a personal session instead of a stored key."""

from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import wraps
from typing import Any, Final

import click

from tollgate.cli.gateway.credentials import Credential, CredentialFile, open_credentials
from tollgate.cli.gateway.http import gateway, gateway_url
from tollgate.cli.gateway.sign_in import (
    Declined,
    find_endpoints,
    gateway_root,
    has_browser,
    renew_session,
    revoke,
    sign_in_by_device,
    sign_in_by_listener,
)
from tollgate.core.clock import Clock, SystemClock
from tollgate.core.ids import IdSource

# A printed token must outlast the five minutes for which agents cache it.
_LEFT_S_MIN: Final = 420


def _at_gateway(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option `--url`, without a trailing slash."""

    @gateway_url
    @wraps(command)
    def called(*, url: str, **arguments: Any) -> None:
        command(url=url.rstrip("/"), **arguments)

    return called


@click.command(epilog="Example: tollgate login --device")
@click.option("--device", is_flag=True, help="Confirm a code in a browser on any machine.")
@_at_gateway
def login(url: str, *, device: bool) -> None:
    """Sign in with your identity provider."""
    clock, root = SystemClock(), gateway_root(url)
    endpoints = find_endpoints(root)
    if device or not has_browser():
        credential = sign_in_by_device(endpoints, clock=clock)
    else:
        credential = sign_in_by_listener(endpoints, clock=clock, ids=IdSource(clock))
    with open_credentials() as credentials:
        credentials.put(root, credential)
    session = gateway(f"{root}/v1", credential.access_token).get("/session")["data"]
    click.echo(
        f"Signed in as {session['member_id']} ({session['role']} of {session['workspace_id']})."
    )
    if credential.refresh_token is None:
        click.echo("The session ends after an hour at most, and cannot be renewed.", err=True)


@click.command(epilog="Example: tollgate token --url https://gateway.example/api/v1")
@_at_gateway
def token(url: str) -> None:
    """Print only an access token for your session, which is renewed if it expires soon.

    Agents use the command as a helper: apiKeyHelper in Claude Code, auth.command in Codex.
    """
    found = session_token(url)
    if found is None:
        raise click.ClickException(f"You are not signed in to {url}: run `tollgate login`.")
    click.echo(found)


@click.command(epilog="Example: tollgate logout")
@_at_gateway
def logout(url: str) -> None:
    """End your session, here and at the gateway."""
    root = gateway_root(url)
    with open_credentials() as credentials:
        credential = credentials.find(root)
        if credential is None:
            click.echo(f"You were not signed in to {url}.")
            return
        credentials.drop(root)
    # Revoking either token ends the session. The access token may have expired.
    try:
        with suppress(click.ClickException) if credential.refresh_token else nullcontext():
            gateway(f"{root}/v1", credential.access_token).delete("/session")
        if credential.refresh_token is not None:
            revoke(find_endpoints(root), credential.refresh_token)
    except click.ClickException as failed:
        click.echo(
            f"The gateway still accepts the session for up to an hour: {failed.message}", err=True
        )
    click.echo(f"Signed out of {url}.")


def session_token(url: str) -> str | None:
    """Return an access token that is valid for a few more minutes; None if nobody is signed in."""
    clock, root = SystemClock(), gateway_root(url)
    with open_credentials() as credentials:
        credential = credentials.find(root)
        if credential is None:
            return None
        return _renew(credentials, root, credential, clock).access_token


def _renew(
    credentials: CredentialFile, root: str, credential: Credential, clock: Clock
) -> Credential:
    """Return a renewed credential; raise ClickException if the user has to sign in again."""
    left_s = credential.expires_s - clock.now_s()
    if left_s >= min(_LEFT_S_MIN, credential.lifetime_s / 2):
        return credential
    if credential.refresh_token is None:
        if left_s > 0:
            return credential
        raise click.ClickException("Your session has ended: run `tollgate login`.")
    try:
        renewed = renew_session(find_endpoints(root), credential.refresh_token, clock=clock)
    except click.ClickException as failed:
        if isinstance(failed, Declined) and failed.code == "invalid_grant":
            credentials.drop(root)
            raise click.ClickException(
                f"Your sign-in has ended: run `tollgate login`. {failed.message}"
            ) from failed
        if left_s > 0:
            return credential
        raise
    credentials.put(root, renewed)
    return renewed
