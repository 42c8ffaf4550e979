"""The embedded DynamoDB and KMS of tests: ministack as a child process, one a test session.

It lies in `.tools/ministack` of the checkout, or where TOLLGATE_MINISTACK says.
"""

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

_STARTS_WITHIN_S = 30.0
_ROOT = Path(__file__).parent.parent


def ministack_command() -> Path | None:
    """The executable, or None where it is not installed."""
    command = Path(
        os.environ.get("TOLLGATE_MINISTACK", _ROOT / ".tools" / "ministack" / "bin" / "ministack")
    )
    return command if command.exists() else None


@dataclass(frozen=True)
class Ministack:
    """A running DynamoDB that a test may stop."""

    url: str
    process: "subprocess.Popen[bytes]"

    def freeze(self) -> None:
        """It takes connections and requests, and answers nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It answers again, with what it had."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """It is gone at once, and so is all that it had."""
        self.process.kill()
        self.process.wait()


@contextmanager
def running_ministack(
    directory: Path,
    port: int | None = None,
    *,
    services: str = "dynamodb,kms",
    packages: Path | None = None,
) -> Iterator[str]:
    """A fresh, empty DynamoDB, or other services, on a loopback port; its endpoint URL.

    `packages` is a folder of packages that it may import beside its own.
    """
    with stoppable_ministack(directory, port, services=services, packages=packages) as ministack:
        yield ministack.url


@contextmanager
def stoppable_ministack(
    directory: Path,
    port: int | None = None,
    *,
    services: str = "dynamodb,kms",
    packages: Path | None = None,
) -> Iterator[Ministack]:
    """A fresh, empty DynamoDB on a loopback port."""
    command = ministack_command()
    if command is None:
        raise FileNotFoundError("ministack is not installed: run `make .tools/ministack/stamp`")
    port = port or free_port()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "SERVICES": services,
        "STATE_DIR": str(directory),
        "LOG_LEVEL": "ERROR",
    }
    run: list[str | Path] = [command]
    if packages is not None:
        # Behind its own packages, so that those which both have stay its own.
        extended = f"import runpy, site; site.addsitedir({str(packages)!r})"
        run = [
            command.with_name("python"),
            "-c",
            f"{extended}; runpy.run_path({str(command)!r}, run_name='__main__')",
        ]
    with (directory / "ministack.log").open("wb") as log:
        process = subprocess.Popen(run, env=environment, stdout=log, stderr=log, cwd=directory)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_it_answers(f"{url}/_ministack/health", process)
            yield Ministack(url, process)
        finally:
            # One that was frozen hears nothing else.
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def wait_until_it_answers(url: str, process: "subprocess.Popen[bytes]") -> None:
    """Wait for an answer to a GET; RuntimeError once the process or our patience ends."""
    gives_up_at = time.monotonic() + _STARTS_WITHIN_S
    while time.monotonic() < gives_up_at:
        if process.poll() is not None:
            raise RuntimeError(f"it ended with {process.returncode}: {process.args!r}")
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except urllib.error.HTTPError as refused:
            refused.close()
            # DynamoDB Local answers 400 to a plain GET; what still starts answers 503.
            if refused.code < 500:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"nothing answers at {url}")


@pytest.fixture(scope="session")
def ministack_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of the session's DynamoDB."""
    if ministack_command() is None:
        pytest.skip("ministack is not installed: run `make .tools/ministack/stamp`")
    with running_ministack(tmp_path_factory.mktemp("ministack")) as url:
        yield url
