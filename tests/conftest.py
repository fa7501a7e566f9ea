"""What every test has: an empty machine, no network beyond loopback, and the doubles."""

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

# Loading and collecting makes hardly any garbage: looking for it would take a fifth of their time.
gc.disable()

FOREIGN_PREFIXES = ("OPENAI_", "LANGFUSE_", "LLM_", "OTEL_", "TELEGRAM_")
# How fast a machine is proves nothing about a property.
settings.register_profile(
    "any machine", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

MOST_WORKERS = 6
PROXIES = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}


class NetworkForbidden(BaseException):
    """A test reached for the network. No `Exception`, so that no fallback of ours can hide it."""


class NetworkGuard:
    """Refuses connections and name look-ups beyond this machine; `refused` remembers them."""

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

    def _refuse(self, what: str) -> None:
        self.refused.append(what)
        raise NetworkForbidden(f"A test may not use the network, and tried to {what}.")


def is_local(host: object) -> bool:
    """Whether `host` is this machine; None and the empty string mean it."""
    name = host.decode() if isinstance(host, bytes) else str(host or "localhost")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def pytest_xdist_auto_num_workers() -> int:
    """How many workers `-n auto` means: of two seconds of a test one is waited, not worked."""
    on_linux = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if on_linux else os.cpu_count() or 1
    return min(MOST_WORKERS, 2 * cores + 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deals the files out, those that wait first: each worker ends with what keeps a core busy."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))

    def place(item: pytest.Item) -> tuple[int, bool]:
        return zlib.crc32(item.path.name.encode()) % workers, item.path.parent.name == "unit"

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """What is loaded by now stays: looking for garbage in it would take a tenth of all."""
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
    """Kills what tests that failed left running: this process would wait for it."""
    yield
    for process in multiprocessing.active_children():
        process.kill()


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """A shell's job in the background ignores Ctrl-C, and so would each process of a test."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def no_network(network_guard: NetworkGuard) -> Iterator[None]:
    """Fails a test that reached for the network, even if the error was swallowed."""
    network_guard.refused.clear()
    yield
    assert not network_guard.refused, f"the network is forbidden: {network_guard.refused}"


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of its own; pytest's reads the names of all others first, for every test."""
    return Path(tempfile.mkdtemp(dir=tmp_path_factory.getbasetemp()))


@pytest.fixture(autouse=True)
def empty_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings, no `.env`, no data, no proxy: the test starts in a folder of its own."""
    ours = {name.upper() for name in Settings.model_fields} | PROXIES
    for name in list(os.environ):
        if name.upper() in ours or name.upper().startswith(FOREIGN_PREFIXES):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    # Reading the certificates of authorities takes each client 20 ms, and none is ever met.
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def bot_api() -> Iterator[BotApi]:
    with BotApi() as server:
        yield server


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    """A language model to script; unscripted and malformed requests fail the test at its end."""
    with ModelServer() as server:
        yield server
        server.verify()


@pytest.fixture
def otlp_receiver() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as server:
        yield server
