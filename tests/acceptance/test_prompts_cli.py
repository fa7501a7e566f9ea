"""`sommelier prompts` as an admin runs it, against a Langfuse of our own."""

from collections.abc import Iterator

import pytest

from agent.prompts import repository_prompts
from tests.commands import sommelier, sommelier_here
from tests.doubles.otlp import OtlpReceiver

NAMES = list(repository_prompts())


@pytest.fixture
def langfuse() -> Iterator[OtlpReceiver]:
    with OtlpReceiver() as server:
        yield server


@pytest.fixture
def keys(empty_environment: dict[str, str], langfuse: OtlpReceiver) -> dict[str, str]:
    return empty_environment | {
        "LANGFUSE_PUBLIC_KEY": langfuse.public_key,
        "LANGFUSE_SECRET_KEY": langfuse.secret_key,
        "LANGFUSE_BASE_URL": langfuse.base_url,
    }


def test_push_creates_what_differs_and_diff_shows_what_does(
    keys: dict[str, str], langfuse: OtlpReceiver
) -> None:
    first = sommelier("prompts", "push", environment=keys)
    assert first.stdout.splitlines() == [f"{name}: version 1 is now production" for name in NAMES]
    same = sommelier_here("prompts", "diff", environment=keys)
    assert (same.returncode, same.stdout) == (
        0,
        f"The {len(NAMES)} prompts are the same in Langfuse (production).\n",
    )
    again = sommelier_here("prompts", "push", environment=keys)
    assert again.stdout == "Nothing to push: Langfuse (production) has the repository's prompts.\n"
    assert {name: len(versions) for name, versions in langfuse.prompts.items()} == dict.fromkeys(
        NAMES, 1
    )

    langfuse.put("refinement", repository_prompts()["refinement"].text + "\nBe \x1b[31mquick.")
    differs = sommelier("prompts", "diff", environment=keys)
    assert differs.returncode == 1
    assert differs.stdout.splitlines()[:2] == [
        f"--- repository/refinement (version {repository_prompts()['refinement'].ref.version})",
        "+++ langfuse/refinement (version 2, production)",
    ]
    assert "\n+Be [31mquick.\n" in differs.stdout
    pushed = sommelier_here("prompts", "push", environment=keys)
    assert pushed.stdout == "refinement: version 3 is now production, in place of version 2\n"
    newest = langfuse.labelled("refinement", "production")
    assert newest is not None
    assert newest.prompt == repository_prompts()["refinement"].text


def test_list_shows_which_version_of_each_is_in_use(
    keys: dict[str, str], langfuse: OtlpReceiver
) -> None:
    langfuse.put("sommelier", repository_prompts()["sommelier"].text + "\nBe quick.", "candidate")
    langfuse.put("refinement", "Rewrite {{question}}.", "candidate")
    done = sommelier_here("prompts", "list", "--label", "candidate", environment=keys)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[0] == ["prompt", "version", "label", "source", "variables"]
    assert rows[1] == [
        *["sommelier", "1", "candidate", "Langfuse"],
        *["{{research_rules}},", "{{schema}}"],
    ]
    assert ["documents-answer", "2", "repository", "{{not_enough}}"] in rows
    assert "repository (Langfuse's version 1 is refused: it lacks {{schema}})" in done.stdout


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"LANGFUSE_SECRET_KEY": ""}, "there are no keys: set LANGFUSE_PUBLIC_KEY and"),
        ({"LANGFUSE_SECRET_KEY": "sk-lf-wrong"}, "Langfuse does not know the keys (HTTP 401)"),
        ({"LANGFUSE_BASE_URL": "http://127.0.0.1:9"}, "Langfuse cannot be reached (ConnectError)"),
    ],
)
def test_trouble_is_one_line_and_status_2(
    settings: dict[str, str], said: str, keys: dict[str, str]
) -> None:
    for command in ("push", "diff"):
        done = sommelier_here("prompts", command, environment=keys | settings)
        assert (done.returncode, done.stdout) == (2, "")
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("sommelier: ")
        assert said in done.stderr
        assert "sk-lf-wrong" not in done.stderr
