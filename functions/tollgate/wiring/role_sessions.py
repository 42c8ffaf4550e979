"""Wires the role sessions in which Bedrock is called for the team of a caller."""

from collections.abc import Callable

from msgspec.structs import replace

from tollgate.aws.role_sessions import RoleSessions, StsRole, session_name
from tollgate.core.clock import Clock
from tollgate.core.principal import Principal
from tollgate.providers.ports.base import ProviderRow, Transport
from tollgate.providers.transports.authorization import MakeTransport, ProviderServices
from tollgate.providers.transports.role_sessions import SessionTransport
from tollgate.settings import Settings
from tollgate.wiring.aws import signer

_MakeInSession = Callable[[ProviderRow, Principal, MakeTransport], Transport]


def wire_session_transports(
    settings: Settings, role_arn: str, services: ProviderServices, clock: Clock
) -> _MakeInSession:
    """Return the function that makes transports in sessions of a role."""
    url = settings.sts_endpoint_url or f"https://sts.{settings.aws_region}.amazonaws.com"
    role = StsRole(role_arn, signer(settings, "sts", clock), url)
    return session_transports(role, services, clock)


def session_transports(role: StsRole, services: ProviderServices, clock: Clock) -> _MakeInSession:
    """Return the function that makes transports whose requests are signed in a caller's session."""
    sessions = RoleSessions(role.assume, clock)

    def make_in_session(row: ProviderRow, principal: Principal, make: MakeTransport) -> Transport:
        session = sessions.session(session_name(principal.workspace_id, principal.team_id))
        signing = make(row, replace(services, credentials=session.current))
        return SessionTransport(row.slug, session, signing)

    return make_in_session
