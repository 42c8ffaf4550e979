"""Wires sign-in, if an issuer is configured."""

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.secret import KeyVariables
from tollgate.engine.gateway import Journal
from tollgate.settings import Settings, environment_variable
from tollgate.sign_in.browser import BrowserSignIn
from tollgate.sign_in.configuration import InvalidSignIn, read_sign_in
from tollgate.sign_in.grants import Grants
from tollgate.sign_in.issuer import Issuer, fetch_from_issuer
from tollgate.sign_in.people import People
from tollgate.stores.aws.secrets import AwsSecretStore
from tollgate.stores.sign_in.codes import DynamoCodeStore
from tollgate.web.sign_in.sign_in_services import Login, LoginServices
from tollgate.wiring.administration import Administration
from tollgate.wiring.aws import wire_secrets
from tollgate.wiring.stores import Stores


def wire_login_services(
    settings: Settings,
    stores: Stores,
    administration: Administration,
    *,
    clock: Clock,
    journal: Journal,
    knows_callers: bool = True,
) -> LoginServices:
    """Return the services of the sign-in app; raise InvalidSignIn for an invalid sign-in file.

    `knows_callers` is False on a server that cannot tell an unknown proxy from a caller.
    """
    ids = IdSource(clock)
    return LoginServices(
        login=_wire_login(settings, stores, administration, clock=clock, ids=ids),
        keys=stores.keys,
        access_log=administration.access_log,
        ids=ids,
        journal=journal,
        clock=clock,
        knows_callers=knows_callers,
    )


def _wire_login(
    settings: Settings,
    stores: Stores,
    administration: Administration,
    *,
    clock: Clock,
    ids: IdSource,
) -> Login | None:
    if settings.sign_in_file is None:
        return None
    try:
        sign_in = read_sign_in(settings.sign_in_file.read_bytes())
    except (OSError, InvalidSignIn) as unusable:
        raise InvalidSignIn(f"{settings.sign_in_file}: {unusable}") from unusable

    secret = sign_in.client_secret
    # The sign-in file may name any environment variable except those that the platform sets.
    variables = KeyVariables((secret.env,) if secret is not None and secret.env else ())
    secret_store = AwsSecretStore(
        wire_secrets(settings, clock), environment_variable, clock, variables=variables
    )
    issuer = Issuer(sign_in, fetch_from_issuer, secret_store, clock=clock)
    codes = DynamoCodeStore(stores.client, stores.tables.core, clock)
    people = People(sign_in, administration.members)
    return Login(
        sign_in=sign_in,
        issuer=issuer,
        people=people,
        browser=BrowserSignIn(sign_in, issuer, people, codes, ids=ids, clock=clock),
        grants=Grants(
            issuer,
            people,
            administration.sessions,
            codes,
            session_s=sign_in.session_s,
            ids=ids,
            clock=clock,
        ),
        codes=codes,
        members=administration.members,
        sessions=administration.sessions,
    )
