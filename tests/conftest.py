"""Give every test an empty environment, no network except loopback, and the test doubles."""

import gc
import ipaddress
import multiprocessing
import os
import signal
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from config import Settings
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer
from tests.doubles.otlp import OtlpReceiver

pytest_plugins = ["tests.databases", "tests.commands"]

# Importing and collecting tests makes little garbage, but looking for it takes a fifth of the time.
gc.disable()

OTHER_PREFIXES = ("OPENAI_", "LANGFUSE_", "LLM_", "OTEL_", "TELEGRAM_")
# A slow machine must not fail a property test.
settings.register_profile(
    "any machine",
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any machine")

MAX_WORKERS = 6
PROXY_VARIABLES = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}


class NetworkForbidden(BaseException):
    """A test used the network. Not an `Exception`, so that no fallback of ours can hide it."""


class NetworkGuard:
    """Refuses connections to other machines and look-ups of their names.

    `refused` lists them. A guard that is not `active` allows everything.
    """

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.active = False
        sys.addaudithook(self._audit)

    def _audit(self, event: str, args: tuple[object, ...]) -> None:
        if not self.active:
            return
        match event, args:
            case "socket.connect", (_, (host, *_) as address) if not is_local(host):
                self._refuse(f"connect to {address}")
            case "socket.getaddrinfo", (host, *_) if not is_local(host):
                self._refuse(f"look up {host}")

    def _refuse(self, action: str) -> None:
        self.refused.append(action)
        raise NetworkForbidden(
            f"A test may not use the network, and tried to {action}."
        )


def is_local(host: object) -> bool:
    """Return whether `host` is this machine, as None and the empty string are."""
    name = host.decode() if isinstance(host, bytes) else str(host or "localhost")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def pytest_xdist_auto_num_workers() -> int:
    """Return the number of workers for `-n auto`: two per core, as tests wait half the time."""
    on_linux = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if on_linux else os.cpu_count() or 1
    return min(MAX_WORKERS, 2 * cores + 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the files by worker, and run unit tests last: they keep cores busy and do not wait."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))

    def sort_key(item: pytest.Item) -> tuple[int, bool]:
        return zlib.crc32(
            item.path.name.encode()
        ) % workers, item.path.parent.name == "unit"

    items.sort(key=sort_key)


def pytest_collection_finish() -> None:
    """Exempt all objects so far from garbage collection, which would take a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def network_guard() -> Iterator[NetworkGuard]:
    guard = NetworkGuard()
    guard.active = True
    yield guard
    guard.active = False


@pytest.fixture(scope="session", autouse=True)
def no_process_left() -> Iterator[None]:
    """Kill processes that failed tests left running, or this process would wait for them."""
    yield
    for process in multiprocessing.active_children():
        process.kill()


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Let Ctrl-C interrupt processes of tests also if a shell runs pytest in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_network(network_guard: NetworkGuard) -> Iterator[None]:
    """Fail a test that used the network, even if the code under test caught the error."""
    network_guard.refused.clear()
    yield
    assert not network_guard.refused, (
        f"the network is forbidden: {network_guard.refused}"
    )


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a new folder, faster than pytest's fixture, which lists all other folders first."""
    return Path(tempfile.mkdtemp(dir=tmp_path_factory.getbasetemp()))


@pytest.fixture(autouse=True)
def empty_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Start the test in an empty folder, without settings, `.env`, data or a proxy."""
    removed = {name.upper() for name in Settings.model_fields} | PROXY_VARIABLES
    for name in list(os.environ):
        if name.upper() in removed or name.upper().startswith(OTHER_PREFIXES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    # Without CA certificates, which no test needs, each HTTP client starts 20 ms faster.
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def bot_api() -> Iterator[BotApi]:
    with BotApi() as server:
        yield server


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """Yield a scripted language model; unscripted or invalid requests fail the test at its end."""
    with ModelServer() as server:
        yield server
        server.verify()


@pytest.fixture
def otlp_receiver() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as server:
        yield server
