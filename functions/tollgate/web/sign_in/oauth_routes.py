"""Discovery, and the OAuth 2.0 endpoints through which programs and pages sign people in."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from tollgate.core.errors import AccessError, ErrorCode, GatewayError, RequestError, invalid_request
from tollgate.sign_in.browser import CALLBACK, LIFETIME_S, Departure
from tollgate.sign_in.codes import read_user_code
from tollgate.sign_in.grants import INTERVAL_S, TokenPair
from tollgate.sign_in.refusals import OAuthRefusal
from tollgate.sign_in.tickets import ForProgram
from tollgate.web.http.source_address import source_of
from tollgate.web.sign_in.sign_in_pages import SIGN_IN_HEADERS, code_page, done_page, failed_page
from tollgate.web.sign_in.sign_in_paths import (
    AUTHORIZE,
    DEVICE_AUTHORIZATION,
    DEVICE_PAGE,
    REVOKE,
    TOKEN,
)
from tollgate.web.sign_in.sign_in_services import Login, LoginServices, person

_FORM_BYTES_MAX: Final = 64 * 1024
_FIELD_LENGTH_MAX: Final = 32 * 1024
_COOKIE: Final = "tollgate_sign_in"
_WINDOW_S: Final = 600
_DEVICES_MAX: Final = 30
# Shared by all callers whose address is unknown; limits how much strangers can cause to be stored.
_PROXY_DEVICES_MAX: Final = 3_000
_TYPED_CODES_MAX: Final = 10
_NO_STORE: Final = {"cache-control": "no-store", "pragma": "no-cache"}
# Refusals that ask the program to try again and do not count as failed sign-ins.
_WAITING: Final = frozenset({"authorization_pending", "slow_down", "temporarily_unavailable"})
_DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"


class OAuthRoutes:
    """The handlers of the OAuth endpoints."""

    def __init__(self, services: LoginServices) -> None:
        self._services = services

    async def discover(self, _: Request) -> Response:
        """Describe the endpoints (RFC 8414), as Claude Code's Cloud gateway expects."""
        base = self._services.configured().sign_in.public_url
        return JSONResponse(
            {
                "issuer": base,
                "authorization_endpoint": base + AUTHORIZE,
                "device_authorization_endpoint": base + DEVICE_AUTHORIZATION,
                "token_endpoint": base + TOKEN,
                "revocation_endpoint": base + REVOKE,
                "grant_types_supported": [_DEVICE_GRANT, "refresh_token", "authorization_code"],
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "scopes_supported": ["openid", "profile", "email"],
                "gateway_protocol_version": 1,
            }
        )

    async def authorize_device(self, request: Request) -> Response:
        """Issue a pair of codes to a program without a browser (RFC 8628, 3.1)."""
        login = self._services.configured()
        await self._services.read_body(request, _FORM_BYTES_MAX)
        address, most = self._services.paced_address(request), _DEVICES_MAX
        if address is None:
            address, most = source_of(request.scope), _PROXY_DEVICES_MAX
        if not await self._counts(login, "device", address or "unknown", most):
            raise _too_often()
        try:
            waiting = await login.grants.wait_for_person()
        except OAuthRefusal as refusal:
            return _refuse(refusal)
        page = login.sign_in.public_url + DEVICE_PAGE
        return JSONResponse(
            {
                "device_code": waiting.device_code,
                "user_code": waiting.user_code,
                "verification_uri": page,
                "verification_uri_complete": f"{page}?user_code={waiting.user_code}",
                "expires_in": LIFETIME_S,
                "interval": INTERVAL_S,
            },
            headers=_NO_STORE,
        )

    async def show_device(self, request: Request) -> Response:
        """Show a program's code for a person to confirm; the form is never sent automatically."""
        login = self._services.configured()
        shown = request.query_params.get("user_code", "")[:20]
        return code_page(shown, action=login.sign_in.public_url + DEVICE_PAGE)

    async def confirm_device(self, request: Request) -> Response:
        """Redirect a person who has confirmed a code to the issuer."""
        login = self._services.configured()
        form = await self._read_form(request)
        public_url = urlsplit(login.sign_in.public_url)
        if request.headers.get("origin") != f"{public_url.scheme}://{public_url.netloc}":
            return failed_page(
                f"This form was not sent from {public_url.scheme}://{public_url.netloc}.",
                status=403,
            )
        typed = form.get("user_code", "")[:20]
        address, code = self._services.paced_address(request), read_user_code(typed)
        if address and not await self._counts(login, "code", address, _TYPED_CODES_MAX):
            return failed_page("Too many codes from your address; wait ten minutes.", status=429)
        if code and not await self._counts(login, "typed", code, _TYPED_CODES_MAX):
            return failed_page("This code was sent too often; begin again there.", status=429)
        try:
            departure = await login.browser.leave_for_device(typed)
        except RequestError as unknown:
            action = login.sign_in.public_url + DEVICE_PAGE
            return code_page(typed, action=action, problem=unknown.message)
        except AccessError as failed:
            return failed_page(failed.message, status=_status(failed))
        return _depart(login, departure)

    async def authorize(self, request: Request) -> Response:
        """Redirect a browser to the issuer, for a page of the console or a local program."""
        login = self._services.configured()
        query = request.query_params
        if query.get("response_type") != "code" or query.get("code_challenge_method") != "S256":
            return failed_page(
                "This address needs response_type=code and code_challenge_method=S256.", status=400
            )
        purpose = ForProgram(
            redirect_uri=query.get("redirect_uri", ""),
            challenge=query.get("code_challenge", ""),
            state=query.get("state", ""),
        )
        try:
            departure = await login.browser.leave_for_program(purpose)
        except GatewayError as refused:
            return failed_page(refused.message, status=_status(refused))
        return _depart(login, departure)

    async def return_from_issuer(self, request: Request) -> Response:
        """Complete a sign-in when the issuer redirects the browser back."""
        login = self._services.configured()
        query, cookie = request.query_params, request.cookies.get(_COOKIE, "")
        state, code = query.get("state", ""), query.get("code")
        failure: str | None = None
        try:
            if code is None:
                failure = "access_denied"
                url = await login.browser.turn_back(state=state, cookie=cookie)
                reply: Response = (
                    failed_page("The identity provider refused the sign-in.", status=403)
                    if url is None
                    else RedirectResponse(url, 303)
                )
            else:
                arrival = await login.browser.arrive(
                    state=state, code=code, cookie=cookie, by=person(request)
                )
                name = arrival.member.display_name or arrival.member.id
                reply = (
                    done_page(name) if arrival.url is None else RedirectResponse(arrival.url, 303)
                )
        except GatewayError as refused:
            failure = refused.code.value
            reply = failed_page(refused.message, status=_status(refused))
        if failure is not None:
            await self._services.note_refusal(request, failure)
        reply.headers.update(SIGN_IN_HEADERS)
        reply.delete_cookie(_COOKIE, path=_callback_path(login))
        return reply

    async def give_tokens(self, request: Request) -> Response:
        """Return a session for a device code, a code or a refresh token."""
        login = self._services.configured()
        form = await self._read_form(request)
        try:
            pair = await _redeem(login, form, request)
        except (OAuthRefusal, AccessError) as failed:
            refusal = _as_refusal(failed)
            if refusal.code not in _WAITING:
                await self._services.note_refusal(request, refusal.code)
            return _refuse(refusal)
        body: dict[str, object] = {
            "access_token": pair.access_token,
            "token_type": "Bearer",
            "expires_in": pair.expires_in,
        }
        if pair.refresh_token is not None:
            body["refresh_token"] = pair.refresh_token
        return JSONResponse(body, headers=_NO_STORE)

    async def revoke(self, request: Request) -> Response:
        """End the session of a token; unknown tokens get the same reply (RFC 7009)."""
        login = self._services.configured()
        form = await self._read_form(request)
        await login.grants.revoke(form.get("token", ""), by=person(request))
        return Response(status_code=200, headers=_NO_STORE)

    async def _read_form(self, request: Request) -> dict[str, str]:
        return _parse_form(await self._services.read_body(request, _FORM_BYTES_MAX))

    async def _counts(self, login: Login, purpose: str, origin: str, most: int) -> bool:
        return await login.codes.count(purpose, origin, window_s=_WINDOW_S, most=most)


async def _redeem(login: Login, form: Mapping[str, str], request: Request) -> TokenPair:
    by = person(request)
    match form.get("grant_type"):
        case "authorization_code":
            return await login.grants.redeem_code(
                _needed(form, "code"),
                verifier=_needed(form, "code_verifier"),
                redirect_uri=_needed(form, "redirect_uri"),
                by=by,
            )
        case "refresh_token":
            return await login.grants.refresh(_needed(form, "refresh_token"), by=by)
        case grant if grant == _DEVICE_GRANT:
            return await login.grants.redeem_device(_needed(form, "device_code"), by=by)
        case _:
            raise OAuthRefusal("unsupported_grant_type", "This grant_type is not supported.")


def _needed(form: Mapping[str, str], name: str) -> str:
    value = form.get(name)
    if not value:
        raise OAuthRefusal("invalid_request", f"{name} is missing.")
    return value


def _parse_form(body: bytes) -> dict[str, str]:
    """Return the fields of a form; raise RequestError if the form cannot be read."""
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=20)
    except ValueError as malformed:
        raise invalid_request("The body is not a form of at most 20 fields.") from malformed
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise invalid_request("The form repeats a field.")
    if any(len(value) > _FIELD_LENGTH_MAX for value in fields.values()):
        raise invalid_request("A field of the form is too long.")
    return fields


def _depart(login: Login, departure: Departure) -> Response:
    """Redirect a browser to the issuer, with a cookie that is sent only to the callback."""
    reply = RedirectResponse(departure.url, 303, headers=dict(SIGN_IN_HEADERS))
    reply.set_cookie(
        _COOKIE,
        departure.cookie,
        max_age=LIFETIME_S,
        path=_callback_path(login),
        secure=login.sign_in.public_url.startswith("https:"),
        httponly=True,
        samesite="lax",
    )
    return reply


def _callback_path(login: Login) -> str:
    return urlsplit(login.sign_in.public_url).path + CALLBACK


def _refuse(refusal: OAuthRefusal) -> Response:
    body = {"error": refusal.code, "error_description": refusal.description}
    return JSONResponse(body, refusal.status, headers=_NO_STORE)


def _as_refusal(refused: OAuthRefusal | AccessError) -> OAuthRefusal:
    if isinstance(refused, OAuthRefusal):
        return refused
    if refused.code is ErrorCode.SERVICE_UNAVAILABLE:
        return OAuthRefusal("temporarily_unavailable", refused.message)
    return OAuthRefusal("access_denied", refused.message)


def _status(error: GatewayError) -> int:
    match error.code:
        case ErrorCode.SERVICE_UNAVAILABLE:
            return 503
        case ErrorCode.PERMISSION_DENIED | ErrorCode.INVALID_API_KEY:
            return 403
        case _:
            return 400


def _too_often() -> GatewayError:
    return AccessError(
        ErrorCode.RATE_LIMIT_EXCEEDED,
        "Too many sign-ins from your network address within ten minutes.",
        retry_after_s=_WINDOW_S,
    )
