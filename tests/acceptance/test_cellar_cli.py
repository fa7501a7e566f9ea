"""`sommelier cellar import`: what was understood is shown, then the bottles are stored."""

import os
import pty
from pathlib import Path

import pytest

from tests.commands import sommelier_here
from tests.processes import Process

TITLES = "Wine,Vintage,Quantity,Location\n"
NIGHTLY = ("cellar", "import", "5")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "mine.csv"
    file.write_text(f"{TITLES}Château Zebulon,2016,3,Rack\nChablis,2020,2,\n", "cp1252")
    return file


def exported(environment: dict[str, str]) -> str:
    return sommelier_here("people", "export", "5", environment=environment).stdout


def test_a_list_is_stored_and_replaced_or_added_as_it_is_said(
    environment: dict[str, str], file: Path
) -> None:
    def run(*more: str) -> tuple[int, str]:
        done = sommelier_here(*NIGHTLY, str(file), *more, environment=environment)
        return done.returncode, done.stdout + done.stderr

    status, shown = run("--dry-run")
    assert status == 0
    for text in (
        "Quantity",
        "Château Zebulon 2016",
        "Rack",
        "5 bottles (2 wines) were read.",
    ):
        assert text in shown
    assert shown.endswith("Nothing was stored.\n")
    assert "Zebulon" not in exported(environment)
    assert run() == (
        0,
        "2 new, 0 changed, 0 gone; 5 bottles (2 wines) are in the cellar now.\n",
    )
    assert run() == (
        2,
        "sommelier: nothing was stored: the user owns bottles; say --replace or --add\n",
    )
    assert run("--replace")[1].endswith("5 bottles (2 wines) are in the cellar now.\n")
    assert run("--add")[1].endswith("10 bottles (2 wines) are in the cellar now.\n")
    file.write_text(f"{TITLES}Chablis,2020,1,\n,2020,1,Rack\n")
    assert run("--replace")[0] == 1  # a row without a name
    assert run("--replace", "--yes")[1].endswith(
        "1 bottle (1 wine) are in the cellar now.\n"
    )


def test_a_list_of_which_much_is_gone_changes_nothing_and_says_so(
    environment: dict[str, str], file: Path
) -> None:
    rows = [f"Wine {number},2016,1,\n" for number in range(12)]
    file.write_text(TITLES + "".join(rows))
    assert sommelier_here(*NIGHTLY, str(file), environment=environment).returncode == 0
    file.write_text(TITLES + "".join(rows[:7]))
    replace = (*NIGHTLY, str(file), "--replace", "--yes")
    done = sommelier_here(*replace, environment=environment)
    assert done.returncode == 3
    assert "5 of the user's wines would be gone" in done.stderr
    assert "Wine 11" in exported(environment)
    done = sommelier_here(*replace, "--allow-shrink", environment=environment)
    assert (
        done.stdout
        == "0 new, 0 changed, 5 gone; 7 bottles (7 wines) are in the cellar now.\n"
    )


@pytest.mark.parametrize(("typed", "is_stored"), [("add\n", True), ("\n", False)])
def test_on_a_terminal_one_chooses_after_what_was_understood(
    environment: dict[str, str], file: Path, typed: str, is_stored: bool
) -> None:
    sommelier_here(*NIGHTLY, str(file), environment=environment)
    file.write_text(f"{TITLES}Rioja,2018,4,\n")
    terminal, process_end = pty.openpty()
    os.write(terminal, typed.encode())
    with Process(
        *NIGHTLY, str(file), environment=environment, stdin=process_end
    ) as process:
        process.wait()
    for text in (
        "Replace: 1 new, 0 changed, 2 gone.",
        "Add: 1 new",
        "(replace, add, cancel)",
    ):
        assert text in process.shown
    assert ("9 bottles (3 wines) are" in process.shown) == is_stored
    assert ("Rioja" in exported(environment)) == is_stored


def test_a_file_that_lists_no_bottles_is_refused(
    environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("name,telephone\n")
    done = sommelier_here(*NIGHTLY, str(file), environment=environment)
    assert done.returncode == 1
    assert done.stderr.startswith(f"sommelier: nothing was stored from {file}: ")
    assert (
        sommelier_here(*NIGHTLY, "nowhere.csv", environment=environment).returncode == 1
    )
