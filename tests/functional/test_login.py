"""People sign in at a terminal: `tollgate login`, `token` and `logout` with a real issuer."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.local_server import ROOT, TOLLGATE, LocalServer, environment, local_server
from tests.upstream.person import Person

ISSUER = Path(sys.executable).with_name("oidc-provider-mock")
ANA = {"sub": "ana", "email": "ana@acme.example", "email_verified": True, "name": "Ana"}
MEMBER = "ana@acme.example"
EVE = {"sub": "eve", "email": "eve@evil.example", "email_verified": True}
PATIENCE_S = 30.0


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
        return port


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    port = free_port()
    people = [part for it in (ANA, EVE) for part in ("--user-claims", json.dumps(it))]
    process = subprocess.Popen(
        [str(ISSUER), "--port", str(port), *people],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    give_up_s = monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            assert monotonic() < give_up_s
            sleep(0.1)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(PATIENCE_S)


@dataclass
class Terminal:
    """A person's machine: a folder of credentials and a gateway."""

    server: LocalServer
    url: str
    folder: Path

    def variables(self, **more: str) -> dict[str, str]:
        own = {"TOLLGATE_URL": self.url, "XDG_CONFIG_HOME": str(self.folder), "NO_COLOR": "1"}
        return environment() | own | more

    @property
    def file(self) -> Path:
        return self.folder / "tollgate" / "credentials.json"

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(TOLLGATE), *words],
            env=self.variables(**more),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    def watch(self, *words: str, on_page: Callable[[str], object], **more: str) -> tuple[int, str]:
        """Run a command in a pseudo-terminal; a page that it names is visited once."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(TOLLGATE, [str(TOLLGATE), *words], self.variables(**more))
        shown, visited = "", False
        try:
            while True:
                try:
                    shown += os.read(terminal, 4096).decode()
                except OSError:
                    break
                page = re.search(r"(http://\S+/device\?user_code=\S+)\s", shown)
                if page and not visited:
                    visited = True
                    on_page(page[1])
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            raise
        finally:
            os.close(terminal)

    def sign_in_by_code(self, subject: str = "ana") -> tuple[int, str]:
        return self.watch("login", "--device", on_page=Person(subject).confirm)

    def sign_in(self) -> None:
        """Sign in by a browser, which keeps nobody waiting for the next look at a code."""
        browser = f"{sys.executable} -m tests.upstream.person %s ana &"
        signed_in = self.run("login", BROWSER=browser, PYTHONPATH=str(ROOT))
        assert "Signed in as ana@acme.example" in signed_in.stdout, signed_in

    def end_session(self) -> None:
        """Let the stored session end now, as if an hour had passed."""
        kept = json.loads(self.file.read_text())
        for credential in kept.values():
            credential["expires_s"] = 0
        self.file.write_text(json.dumps(kept))


@pytest.fixture(scope="module")
def gateway(issuer: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    folder, port = tmp_path_factory.mktemp("gateway"), free_port()
    sign_in = {
        "public_url": f"http://127.0.0.1:{port}/api",
        "issuer": issuer,
        "client_id": "tollgate",
        "client_secret": {"env": "OIDC_CLIENT_WORD"},
        "rules": [
            {"claims": {"email": "*@acme.example"}, "workspace": "default", "role": "developer"}
        ],
    }
    file = folder / "sign-in.json"
    file.write_text(json.dumps(sign_in))
    extra = {
        "TOLLGATE_SIGN_IN_FILE": str(file),
        "OIDC_CLIENT_WORD": "hush",
        "TOLLGATE_TRUSTED_PROXIES": "127.0.0.0/8, ::1",
    }
    with local_server(folder / "state", extra=extra, port=port) as started:
        yield started


@pytest.fixture
def terminal(gateway: LocalServer, tmp_path: Path) -> Terminal:
    # The gateway names itself as the file does: the host is part of what a token is sent to.
    url = gateway.base_url.replace("localhost", "127.0.0.1")
    return Terminal(gateway, url, tmp_path)


def session(terminal: Terminal, secret: str) -> int:
    request = Request(f"{terminal.url}/session", headers={"authorization": f"Bearer {secret}"})
    try:
        with urlopen(request) as reply:
            return int(reply.status)
    except HTTPError as refused:
        with refused:
            return refused.code


def test_a_person_signs_in_by_a_code_and_out_again(terminal: Terminal) -> None:
    status, shown = terminal.sign_in_by_code()
    assert status == 0, shown
    assert "Signed in as ana@acme.example (developer of default)." in shown
    assert terminal.file.stat().st_mode & 0o777 == 0o600
    token = terminal.run("token")
    assert re.fullmatch(r"sk-tg-\w+\n", token.stdout), token
    assert token.stderr == ""
    assert session(terminal, token.stdout.strip()) == 200
    manager = terminal.server.management_key
    audit = terminal.run("audit", "--json", TOLLGATE_KEY=manager)
    actions = [entry["action"] for entry in json.loads(audit.stdout)]
    assert {"member.create", "session.open"} <= set(actions)
    assert terminal.run("logout").returncode == 0
    assert session(terminal, token.stdout.strip()) == 401
    # Signing out ends every session of the refresh token.
    listed = terminal.run("sessions", "ls", MEMBER, "--json", TOLLGATE_KEY=manager)
    assert json.loads(listed.stdout) == []
    again = terminal.run("token")
    assert (again.returncode, again.stdout) == (1, "")
    assert "tollgate login" in again.stderr


@pytest.mark.parametrize("which", ["one", "all"])
def test_an_administrator_ends_the_sessions_of_a_person(terminal: Terminal, which: str) -> None:
    terminal.sign_in()
    manager = terminal.server.management_key
    mine = terminal.run("sessions", "ls", MEMBER, "--json")
    assert mine.returncode == 0, mine.stderr
    listed = json.loads(mine.stdout)
    assert (listed[-1]["member_id"], listed[-1]["renewable"]) == (MEMBER, True)
    neither = terminal.run("sessions", "end", MEMBER)
    assert "Give the id of a session, or --all." in neither.stderr
    chosen = "--all" if which == "all" else listed[-1]["id"]
    ended = terminal.run("sessions", "end", MEMBER, chosen, TOLLGATE_KEY=manager)
    assert ended.stdout.endswith("ended.\n"), ended.stderr
    left = json.loads(terminal.run("sessions", "ls", MEMBER, "--json", TOLLGATE_KEY=manager).stdout)
    assert left == ([] if which == "all" else listed[:-1])
    # The program holds a refresh token, which renews nothing.
    terminal.end_session()
    assert "tollgate login" in terminal.run("token").stderr


def test_a_developer_sees_own_spending_and_routes_without_a_key(terminal: Terminal) -> None:
    terminal.sign_in()
    spent = terminal.run("spend")
    assert spent.returncode == 0, spent.stderr
    assert re.search(r"[0-9-]+ to [0-9-]+: \$0\n", spent.stderr)
    whole = json.loads(terminal.run("spend", "--json").stdout)
    assert (whole["refunds"], whole["net"]) == (None, None)
    explained = terminal.run("explain", "test/echo")
    assert explained.returncode == 0, explained.stderr
    refused = terminal.run("audit")
    assert "not developer." in refused.stderr
    assert "or ask an admin of the workspace." in refused.stderr


@pytest.mark.nightly
def test_helpers_that_run_at_once_share_one_renewed_token(terminal: Terminal) -> None:
    terminal.sign_in()
    first = terminal.run("token").stdout
    terminal.end_session()
    helpers = [
        subprocess.Popen(
            [str(TOLLGATE), "token"],
            env=terminal.variables(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    printed = [helper.communicate(timeout=PATIENCE_S) for helper in helpers]
    assert {errors for _, errors in printed} == {""}
    [renewed] = {token for token, _ in printed}
    assert renewed != first
    assert session(terminal, renewed.strip()) == 200


def test_a_refresh_token_that_somebody_else_has_used_ends_the_sign_in(terminal: Terminal) -> None:
    terminal.sign_in()
    terminal.end_session()
    stolen = terminal.file.read_text()
    assert terminal.run("token").returncode == 0
    kept = json.loads(stolen)
    for credential in kept.values():
        credential["refresh_token"] = credential["refresh_token"].partition(".")[0] + ".guessed"
    terminal.file.write_text(json.dumps(kept))
    refused = terminal.run("token")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Your sign-in has ended: run `tollgate login`" in refused.stderr
    assert json.loads(terminal.file.read_text()) == {}


def test_credentials_that_others_may_read_are_not_used(terminal: Terminal) -> None:
    terminal.sign_in()
    terminal.file.chmod(0o644)
    refused = terminal.run("token")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "chmod 600" in refused.stderr


@pytest.mark.parametrize("words", [("token",), ("keys", "ls")])
def test_a_folder_that_cannot_be_written_is_named(
    terminal: Terminal, words: tuple[str, ...]
) -> None:
    terminal.folder.joinpath("tollgate").write_text("a file")
    refused = terminal.run(*words)
    assert (refused.returncode, refused.stdout) == (1, "")
    reason = f"Error: A sign-in cannot be stored in {terminal.folder}/tollgate: "
    assert refused.stderr.startswith(reason)


@pytest.mark.nightly
def test_somebody_whom_no_rule_knows_hears_it_in_the_terminal(terminal: Terminal) -> None:
    status, shown = terminal.sign_in_by_code("eve")
    assert status == 1
    assert "eve may not sign in: no rule" in shown
    assert not terminal.file.exists()


def test_a_browser_of_this_machine_comes_back_by_itself(terminal: Terminal) -> None:
    terminal.sign_in()
    assert terminal.run("token").returncode == 0


@pytest.mark.nightly
def test_a_gateway_without_sign_in_says_so(terminal: Terminal, tmp_path: Path) -> None:
    with local_server(tmp_path / "plain") as plain:
        refused = terminal.run("login", TOLLGATE_URL=plain.base_url)
        assert refused.returncode == 1
        assert "Sign-in is not configured here" in refused.stderr


def test_callers_behind_a_trusted_proxy_are_counted_by_their_own_addresses(
    gateway: LocalServer,
) -> None:
    url = gateway.base_url.replace("localhost", "127.0.0.1").removesuffix("/v1")

    def confirm(forwarded: str, last: str) -> int:
        origin = url.removesuffix("/api")
        request = Request(
            f"{url}/device",
            data=f"user_code=BCDF-GHJ{last}".encode(),
            headers={"origin": origin, "x-forwarded-for": forwarded},
        )
        try:
            with urlopen(request) as reply:
                return int(reply.status)
        except HTTPError as refused:
            with refused:
                return refused.code

    # What the caller itself states before the proxy's entry counts for nothing.
    letters = "BCDFGHJKLMN"
    of_one = [confirm(f"198.51.100.{n}, 192.0.2.1", it) for n, it in enumerate(letters)]
    assert of_one == [400] * 10 + [429]
    assert [confirm(f"192.0.2.{n}", "P") for n in range(2, 8)] == [400] * 6
