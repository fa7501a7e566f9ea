"""The window of a conversation that a model is shown."""

from agent.conversation import StoredMessage
from agent.sommelier.history import window


def test_the_window_tells_the_ids_of_wines_shown_and_leaves_blanks_out() -> None:
    stored = [
        StoredMessage("user", "A red?"),
        StoredMessage("assistant", "Two:", ("a-2020", "b-2019")),
        StoredMessage("assistant", "  "),
    ]
    assert window(stored) == [
        {"role": "user", "content": "A red?"},
        {"role": "assistant", "content": "Two:\n\n[wine ids: a-2020, b-2019]"},
    ]
