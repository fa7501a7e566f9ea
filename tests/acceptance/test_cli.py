"""The command line, in a subprocess where that matters."""

import os
import pty
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.commands.output import run_with_database
from bot.updates.scheduler import row_of
from config import Settings, load_settings
from db.engine import Sessions
from db.models import Base, FactRow, UpdateState
from tests.acceptance.test_end_to_end import known_to, telegram_at, traced_to
from tests.commands import sommelier, sommelier_here
from tests.doubles.bot_api import BotApi
from tests.doubles.model_server import ModelServer, answer_json, error
from tests.doubles.otlp import OtlpReceiver
from tests.processes import Process

ROOT = Path(__file__).parents[2]
TOKEN = "123456789:AAThisIsNotTheTokenOfTheBotApiDouble"


@pytest.mark.parametrize(
    ("command", "settings", "status", "line"),
    [
        ("run", {}, 2, "TELEGRAM_BOT_TOKEN is not set"),
        (
            "run",
            {"TELEGRAM_BOT_TOKEN": TOKEN},
            2,
            "Telegram rejects TELEGRAM_BOT_TOKEN: get",
        ),
        (
            "run",
            {"API_TOKEN": "hidden", "HTTP_PORT": "8080"},
            2,
            "API_TOKEN: must be 16 to 256",
        ),
        (
            "documents list",
            {"DATABASE_URL": "postgresql+psycopg://ada:hidden@127.0.0.1:1/wines"},
            1,
            "The database postgresql+psycopg://ada:***@127.0.0.1:1/wines cannot be reached",
        ),
    ],
)
def test_an_expected_error_is_one_line_without_secrets(
    environment: dict[str, str],
    bot_api: BotApi,
    command: str,
    settings: dict[str, str],
    status: int,
    line: str,
) -> None:
    environment |= {"TELEGRAM_BASE_URL": bot_api.base_url}
    done = sommelier(*command.split(), environment=environment, **settings)
    assert done.returncode == status
    assert done.stderr.startswith(f"sommelier: {line}")
    assert len(done.stderr.splitlines()) == 1
    assert "hidden" not in done.stderr
    assert TOKEN not in done.stderr


def test_on_an_empty_machine_files_are_created_that_only_their_owner_can_read(
    empty_environment: dict[str, str], tmp_path: Path
) -> None:
    upgraded = sommelier("db", "upgrade", environment=empty_environment)
    again = sommelier_here("db", "upgrade", environment=empty_environment)
    assert upgraded.stdout.endswith("it upgraded from none.\n")
    assert again.stdout.endswith("it was up to date.\n")
    (database,) = tmp_path.rglob("sommelier.sqlite3")
    files = [*database.parent.iterdir()]
    assert [file for file in files if file.stat().st_mode & 0o077] == []


def test_updates_that_were_set_aside_are_listed_without_text_and_tried_again(
    environment: dict[str, str],
) -> None:
    row = row_of({"update_id": 7, "message": {"chat": {"id": 5}, "text": "my secret"}})
    row.state, row.error, row.received_at = (
        UpdateState.SET_ASIDE,
        "ValueError",
        datetime.now(UTC),
    )
    store(row, environment)
    listed = sommelier_here("updates", "list", environment=environment)
    assert listed.stdout.startswith("7  ")
    assert listed.stdout.endswith("chat 5  ValueError\n")
    assert "secret" not in listed.stdout
    retried = sommelier_here("updates", "retry", "7", environment=environment)
    again = sommelier_here("updates", "retry", "7", environment=environment)
    assert retried.stdout == "The running bot will try update 7 again.\n"
    assert (again.returncode, again.stdout) == (1, "")
    assert (
        again.stderr
        == "sommelier: there is no failed update 7; see `sommelier updates list`\n"
    )


def test_the_data_of_a_user_is_exported_and_deleted(
    environment: dict[str, str],
) -> None:
    store(
        FactRow(user_id=5, kind="hate", value="grapes=merlot", at=datetime.now(UTC)),
        environment,
    )
    exported = sommelier_here("people", "export", "5", environment=environment)
    assert "grapes=merlot" in exported.stdout
    deleted = sommelier_here("people", "forget", "5", "--yes", environment=environment)
    assert deleted.stdout.startswith("Deleted.")
    assert (
        "merlot"
        not in sommelier_here("people", "export", "5", environment=environment).stdout
    )


def store(row: Base, environment: dict[str, str]) -> None:
    """Store a row in the database of an environment."""

    async def add(sessions: Sessions) -> None:
        async with sessions.begin() as session:
            session.add(row)

    (file,) = Path(environment["XDG_DATA_HOME"]).rglob("sommelier.sqlite3")
    run_with_database(
        load_settings(None, {"DATABASE_URL": f"sqlite+aiosqlite:///{file}"}), add
    )


def test_wines_are_imported(environment: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "wines.csv"
    header = "producer,name,country,style,price,foods\n"
    file.write_text(f"{header}Domaine Zebulon,Cuvée Acceptance,France,red,12,lamb\n")
    first = sommelier_here("wines", "import", str(file), environment=environment)
    second = sommelier_here("wines", "import", str(file), environment=environment)
    preview = sommelier_here(
        "wines", "import", str(file), "--dry-run", environment=environment
    )
    samples = "starter wines are offered too; --without-samples takes them away.\n"
    assert first.stdout.startswith("1 added, 0 updated, 0 unchanged.\n")
    assert first.stdout.endswith(samples)
    assert second.stdout.startswith("0 added, 0 updated, 1 unchanged.\n")
    assert re.search(r"Domaine Zebulon Cuvée Acceptance NV.*€12", preview.stdout)
    assert preview.stdout.endswith(
        "Would be: 0 added, 0 updated, 1 unchanged.\nNothing was imported.\n"
    )
    file.write_text(f"{header}A,B,France,red,,\nC,D,Spain,red,dear,\n")
    invalid = sommelier_here("wines", "import", str(file), environment=environment)
    assert (invalid.returncode, invalid.stdout) == (1, "")
    assert invalid.stderr.splitlines()[-1].split()[:2] == ["1", "price"]
    assert invalid.stderr.rstrip().endswith("line 3: dear")


def test_a_list_that_was_cut_off_changes_nothing_and_says_so(
    environment: dict[str, str], tmp_path: Path
) -> None:
    file, report = tmp_path / "products.csv", tmp_path / "problems.csv"
    header = "producer,name,style,price\n"
    rows = [f"Maker,Wine {number},red,{10 + number}\n" for number in range(12)]
    nightly = ("wines", "import", str(file), "--yes", "--report", str(report))

    def run(*more: str) -> tuple[int, str]:
        done = sommelier_here(*nightly, *more, environment=environment)
        return done.returncode, done.stdout + done.stderr

    file.write_text(header + "".join(rows))
    assert run()[0] == 0
    file.write_text(
        header + "".join(rows[:11]) + rows[11][:9]
    )  # in the middle of a line
    status, said = run()
    assert (status, "was probably cut off" in said) == (3, True)
    file.write_text(header + "".join(rows[:7]))
    status, said = run()
    assert status == 3
    assert "of 12 wines of this list, 5 would be out of stock and 0 would" in said
    assert "--allow-shrink" in said
    file.write_text(
        header + "".join(row.replace(",1", ",9") for row in rows)
    )  # 10.. to 90..
    assert (run()[0], "10 would change their price" in run()[1]) == (3, True)
    file.write_text(
        header + "".join(rows) + "Maker,Dear,red,dear\nMaker,Cheap,red,cheap\n"
    )
    status, said = run()
    assert (status, "0 added, 0 updated, 12 unchanged." in said) == (0, True)
    assert re.search(
        r"2 +price +should be a valid number.* +line 14: dear; line 15: cheap", said
    )
    assert report.read_text().splitlines()[1].startswith("14,price,dear,")
    file.write_text(header + rows[0])
    assert run("--allow-shrink")[0] == 0


@pytest.mark.parametrize(("typed", "count"), [("n\n", 0), ("y\n", 1)])
def test_on_a_terminal_a_list_is_shown_before_anything_is_written(
    environment: dict[str, str], tmp_path: Path, typed: str, count: int
) -> None:
    file = tmp_path / "liste.csv"
    file.write_text(
        "Weingut;Bezeichnung;Farbe;Preis\nZebulon;Rot;rot;9,50 €\nZ;Y;weiß;teuer\n",
        "utf-8",
    )
    terminal, process_end = pty.openpty()
    os.write(terminal, typed.encode())
    with Process(
        "wines", "import", str(file), environment=environment, stdin=process_end
    ) as process:
        process.wait()
    for text in (
        "Zebulon Rot NV",
        "line 3: teuer",
        "Import 1 of 2? 1 need attention. [y/N]",
    ):
        assert text in process.shown
    assert ("Nothing was imported." in process.shown) == (count == 0)
    again = sommelier_here(
        "wines", "import", str(file), "--yes", environment=environment
    )
    assert again.stdout.startswith(f"{1 - count} added, 0 updated, {count} unchanged.")


def test_doctor_finds_nothing_wrong_on_an_empty_machine_nor_with_everything_configured(
    environment: dict[str, str],
    bot_api: BotApi,
    model_server: ModelServer,
    otlp_receiver: OtlpReceiver,
) -> None:
    model_server.default = answer_json({"colour": "white", "is_served_cold": True})
    done = sommelier_here("doctor", environment=environment)
    names = [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert names == [
        "✓ settings",
        "✓ database",
        "– model",
        "– Telegram",
        "– staff",
        "– tools",
        "– tracing",
    ]
    assert done.returncode == 0
    settings = full_settings(bot_api, model_server, otlp_receiver)
    done = sommelier_here("doctor", environment=environment, **settings)
    assert done.returncode == 0, done.stdout
    for text in (
        "this is @sommelier_test_bot",
        "gave a valid answer after 1 request(s)",
        "traces go to Sommelier (Langfuse 4.16.0); set TRACE_USER_KEY",
    ):
        assert text in done.stdout
    otlp_receiver.version = "4.9.2"
    done = sommelier_here("doctor", environment=environment, **traced_to(otlp_receiver))
    assert (
        "✗ tracing: Sommelier (Langfuse 4.9.2) is too old: update it to 4.16"
        in done.stdout
    )
    assert done.returncode == 1


def test_doctor_reports_problems_without_secrets(
    environment: dict[str, str],
    bot_api: BotApi,
    model_server: ModelServer,
    otlp_receiver: OtlpReceiver,
) -> None:
    model_server.default = error(401)
    settings = full_settings(bot_api, model_server, otlp_receiver) | {
        "TELEGRAM_BOT_TOKEN": TOKEN,
        "LANGFUSE_SECRET_KEY": "sk-lf-wrong",
        "DATABASE_URL": "postgresql+psycopg://ada:hidden@127.0.0.1:1/wines",
    }
    done = sommelier_here("doctor", environment=environment, **settings)
    assert (done.returncode, done.stderr) == (1, "")
    reports = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert reports["✗ Telegram"].startswith("InvalidToken; check TELEGRAM_BOT_TOKEN")
    assert "answered 401" in reports["✗ model"]
    assert "check OPENAI_API_KEY" in reports["✗ model"]
    assert "Check DATABASE_URL" in reports["✗ database"]
    assert "LANGFUSE_SECRET_KEY" in reports["✗ tracing"]
    for secret in (TOKEN, "hidden", "sk-lf-wrong", "sk-model-secret"):
        assert secret not in done.stdout
    unreachable = {
        "TELEGRAM_BASE_URL": "http://127.0.0.1:1",
        "OPENAI_BASE_URL": "http://127.0.0.1:1/v1",
    }
    done = sommelier_here("doctor", environment=environment, **settings | unreachable)
    assert "✗ Telegram: NetworkError; check" in done.stdout
    assert "is the server at http://127.0.0.1:1/v1/ running?" in done.stdout


def full_settings(
    bot_api: BotApi, model_server: ModelServer, otlp_receiver: OtlpReceiver
) -> dict[str, str]:
    settings = telegram_at(bot_api) | known_to(model_server) | traced_to(otlp_receiver)
    return settings | {"OPENAI_API_KEY": "sk-model-secret"}


def test_the_example_file_has_ten_settings_with_their_defaults(tmp_path: Path) -> None:
    lines = re.findall(
        r"^# ([A-Z_]+=.*)$", (ROOT / ".env.example").read_text(), re.MULTILINE
    )
    names = {name.upper() for name in Settings.model_fields}
    assert len(lines) == 10
    assert {line.partition("=")[0] for line in lines} <= names
    (tmp_path / "copied.env").write_text("\n".join(lines))
    assert load_settings(tmp_path / "copied.env") == load_settings(None)


def test_doctor_prints_every_setting_and_hides_secrets(
    environment: dict[str, str],
) -> None:
    settings = {
        "OPENAI_API_KEY": "sk-hidden",
        "LEGAL_AGE": "21",
        "DATABASE_URL": "postgresql+psycopg://ada:hidden@localhost/wines",
        "OTEL_EXPORTER_OTLP_HEADERS": "api-key=hidden",
    }
    done = sommelier_here("doctor", "--settings", environment=environment, **settings)
    printed = [line.split() for line in done.stdout.splitlines()[1:]]
    assert done.returncode == 0
    assert [line[0] for line in printed] == [
        name.upper() for name in Settings.model_fields
    ]
    assert ["LEGAL_AGE", "21"] in [line[:2] for line in printed]
    assert "hidden" not in done.stdout
