"""What /stats shows: a table for a phone, and a picture."""

from dataclasses import replace
from datetime import date, timedelta
from io import BytesIO

import pytest
from PIL import Image

from agent.repositories import DayStats, Stats
from bot.admin.page import (
    COLORS,
    HEIGHT,
    OTHER,
    WIDTH,
    parts,
    stats_chart,
    stats_table,
    title,
)

TODAY = date(2026, 5, 7)
DAY = DayStats(
    TODAY,
    people=3,
    turns=40,
    retried=4,
    outcomes={"answered": 30, "salvaged": 4, "fallback": 4, "failed": 2},
    liked=5,
    disliked=1,
    tokens=1_234_567,
    cost_usd=0.4,
    median_seconds=2.34,
    p95_seconds=9.1,
)
QUIET = [DayStats(TODAY - timedelta(days=number)) for number in range(6, 0, -1)]


def drawn(days: list[DayStats]) -> Image.Image:
    image = Image.open(BytesIO(stats_chart(days)))
    image.load()
    return image


def colors_of(image: Image.Image) -> set[str]:
    found = image.convert("RGB").getcolors(WIDTH * HEIGHT) or []
    seen = [color for count, color in found if count > 500 and isinstance(color, tuple)]
    return {f"#{bytes(color).hex().upper()}" for color in seen}


def test_the_picture_has_its_size_and_each_outcome_of_a_day_its_color() -> None:
    image = drawn([*QUIET, DAY])
    assert (image.format, image.size) == ("PNG", (WIDTH, HEIGHT))
    assert set(COLORS.values()) - colors_of(image) == {
        COLORS[each] for each in ("refused", "care", OTHER)
    }
    assert image.getpixel((5, 5)) == (255, 255, 255)


def test_a_bar_is_as_high_as_its_turns() -> None:
    half = DayStats(TODAY, turns=20, outcomes={"answered": 20})
    green = (0x2A, 0x7F, 0x62)

    def height(day: DayStats) -> int:
        image = drawn([day, DayStats(TODAY, turns=40, outcomes={"failed": 40})])
        column = [image.getpixel((340, y)) for y in range(140, 590)]
        return column.count(green)

    full = DayStats(TODAY, turns=40, outcomes={"answered": 40})
    assert height(half) == pytest.approx(height(full) / 2, abs=2)


@pytest.mark.parametrize("turns", [1, 99_999])
def test_days_without_turns_and_very_busy_ones_can_be_drawn(turns: int) -> None:
    busy = DayStats(TODAY, turns=turns, outcomes={"failed": 1, "answered": turns - 1})
    assert drawn([*QUIET, busy]).size == (WIDTH, HEIGHT)
    assert drawn(QUIET).size == (WIDTH, HEIGHT)


def test_outcomes_of_another_version_are_drawn_as_other() -> None:
    assert parts(DayStats(TODAY, turns=3, outcomes={"failed": 1, "postponed": 2})) == [
        ("failed", 1),
        ("other", 2),
    ]


def test_the_title_says_which_days_are_shown() -> None:
    assert title([*QUIET, DAY]) == "Turns a day (UTC) by outcome, 1 May to 7 May 2026"


def test_the_table_fits_a_phone() -> None:
    week = replace(DAY, people=1234, turns=120_000, median_seconds=3.45, cost_usd=123.4)
    assert stats_table(Stats((*QUIET, DAY), week)).splitlines() == [
        "                  today    7 days",
        "people                3     1,234",
        "turns                40   120,000",
        "retried          4  10%    4   0%",
        "failed           2   5%    2   0%",
        "salvaged         4  10%    4   0%",
        "fallback         4  10%    4   0%",
        "refused          0   0%    0   0%",
        "cost              $0.40   $123.40",
        "tokens            1.2 M     1.2 M",
        "median            2.3 s     3.5 s",
        "95 % within       9.1 s     9.1 s",
        "👍 / 👎             5 / 1     5 / 1",
    ]


def test_the_table_keeps_its_width_when_days_are_very_busy() -> None:
    outcomes = {"fallback": 123_456, "failed": 700_000}
    busy = replace(DAY, turns=1_000_000, retried=999_999, outcomes=outcomes, people=98_765)
    lines = stats_table(Stats((*QUIET, busy), busy)).splitlines()
    assert max(map(len, lines)) <= 34
    assert "fallback      123k  12% 123k  12%" in lines


def test_the_table_of_days_without_turns_has_no_shares() -> None:
    assert "failed                0         0" in stats_table(Stats((*QUIET,), QUIET[0]))
