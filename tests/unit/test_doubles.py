"""The machine that every test sees."""

import os
import re
import socket
from pathlib import Path

import pytest

from tests.conftest import NetworkForbidden, NetworkGuard


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
