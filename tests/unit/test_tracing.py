from pydantic import SecretStr

from agent.tracing.records import compute_keyed_hash


def test_a_user_keeps_the_hash_across_restarts() -> None:
    assert compute_keyed_hash("user", 42, SecretStr("key")) == "8a58a6fb90933a0d"
