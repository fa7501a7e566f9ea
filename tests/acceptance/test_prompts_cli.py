"""`sommelier prompts` with a test server of Langfuse."""

import pytest

from agent.prompts import built_in_prompts
from tests.acceptance.test_end_to_end import traced_to
from tests.commands import sommelier, sommelier_here
from tests.doubles.otlp import OtlpReceiver

NAMES = list(built_in_prompts())


@pytest.fixture
def keys(
    empty_environment: dict[str, str], otlp_receiver: OtlpReceiver
) -> dict[str, str]:
    return empty_environment | traced_to(otlp_receiver)


def test_push_creates_versions_of_changed_prompts(
    keys: dict[str, str], otlp_receiver: OtlpReceiver
) -> None:
    first = sommelier("prompts", "push", environment=keys)
    assert first.stdout.splitlines() == [
        f"{name}: version 1 is now production" for name in NAMES
    ]
    again = sommelier_here("prompts", "push", environment=keys)
    assert (
        again.stdout
        == "Nothing to push: Langfuse (production) has the repository's prompts.\n"
    )
    otlp_receiver.save_prompt(
        "refinement", built_in_prompts()["refinement"].text + "\nBe quick."
    )
    pushed = sommelier_here("prompts", "push", environment=keys)
    assert (
        pushed.stdout
        == "refinement: version 3 is now production, in place of version 2\n"
    )
    newest = otlp_receiver.find_prompt("refinement", "production")
    assert newest is not None
    assert newest.prompt == built_in_prompts()["refinement"].text


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("", "there are no keys of Langfuse: set LANGFUSE_PUBLIC_KEY and"),
        ("sk-lf-wrong", "Langfuse answered HTTP 401: Invalid credentials.; check"),
    ],
)
def test_an_error_is_one_line_and_status_2(
    key: str, said: str, keys: dict[str, str]
) -> None:
    done = sommelier_here(
        "prompts", "push", environment=keys | {"LANGFUSE_SECRET_KEY": key}
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr
    assert "sk-lf-wrong" not in done.stderr
