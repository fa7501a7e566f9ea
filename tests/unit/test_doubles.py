"""The doubles' servers, and the machine that every test sees."""

import gc
import os
import re
import socket
import threading
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.conftest import NetworkForbidden, NetworkGuard
from tests.doubles.model_server import ModelServer, Step
from tests.doubles.server import JsonObject, LoopbackServer

USER: JsonObject = {"role": "user", "content": "a red for lamb"}


# The servers themselves


def test_a_stopped_server_leaves_no_thread_and_frees_its_port() -> None:
    with LoopbackServer([]) as server:
        port = int(server.base_url.rpartition(":")[2])
        assert httpx.get(server.base_url).status_code == 404
        assert "LoopbackServer" in [thread.name for thread in threading.enumerate()]
    assert "LoopbackServer" not in [thread.name for thread in threading.enumerate()]
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))


def test_a_connection_that_comes_as_a_server_stops_is_cut_too() -> None:
    for _ in range(100):
        server = LoopbackServer([]).start()
        address = "127.0.0.1", int(server.base_url.rsplit(":", 1)[1])
        with socket.create_connection(address, timeout=30) as client:
            server.stop()
            with suppress(ConnectionResetError):
                assert client.recv(1) == b""
    gc.collect()


def test_a_bug_of_a_double_is_raised_when_it_stops() -> None:
    def broken(_: JsonObject) -> Step:
        raise ZeroDivisionError

    server = ModelServer(broken).start()
    httpx.post(f"{server.base_url}/chat/completions", json={"messages": [USER]})
    with pytest.raises(RuntimeError, match="ModelServer itself failed"):
        server.__exit__()


# The machine that tests see


async def test_reaching_for_the_network_names_the_address(network_guard: NetworkGuard) -> None:
    with pytest.raises(NetworkForbidden, match=r"tried to look up wine\.example"):
        socket.create_connection(("wine.example", 443))
    with socket.socket() as connection, pytest.raises(NetworkForbidden, match=r"192\.0\.2\.1"):
        connection.connect(("192.0.2.1", 443))
    assert network_guard.refused == ["look up wine.example", "connect to ('192.0.2.1', 443)"]
    network_guard.refused.clear()


def test_the_machine_is_empty(tmp_path: Path) -> None:
    foreign = re.compile("OPENAI_|LANGFUSE_|TELEGRAM_|LLM_|DATABASE_URL", re.IGNORECASE)
    assert [name for name in os.environ if foreign.match(name)] == []
    assert os.environ["XDG_DATA_HOME"] == str(tmp_path / "data")
    assert Path.cwd() == tmp_path
