"""Dishes in six languages: every food by its commonest words, as people put them."""

import pytest

from agent.house_sommelier import lexicon
from agent.house_sommelier.lexicon import LANGUAGES, Language
from agent.house_sommelier.understanding import understand
from agent.sommelier.wine import Food

PHRASES: list[tuple[str, list[str]]] = [
    ("Rotwein zu Wild", ["game"]),
    ("ein Roter zum Wild", ["game"]),
    ("etwas mit Wild und Pilzen", ["game", "mushrooms"]),
    ("rode wijn bij wild", ["game"]),
    ("rode wijn bij het wild", ["game"]),
    ("a red for wild boar", ["game"]),
    ("a red for wild mushrooms", ["mushrooms"]),
    ("un rosso per carne alla griglia", ["barbecue"]),
    ("un rouge pour un repas au barbecue", ["barbecue"]),
    ("Wein mit Käse", ["hard_cheese", "soft_cheese"]),
    ("vino con queso", ["hard_cheese", "soft_cheese"]),
    ("vin pour des pâtes", ["pasta"]),
    ("vin avec du pâté", ["charcuterie"]),
    ("Weißwein zu Austern und Muscheln", ["oysters", "shellfish"]),
    ("vino para jamón ibérico", ["charcuterie"]),
    ("witte wijn bij garnalen", ["shellfish"]),
    ("Rotwein zu Rinderrouladen", ["beef"]),
    ("un blanc pour des coquilles Saint-Jacques", ["shellfish"]),
    ("un vino per spaghetti alle vongole", ["shellfish"]),
    ("wijn bij boerenkool met worst", ["vegetables", "charcuterie"]),
]


@pytest.mark.parametrize(("text", "foods"), PHRASES)
def test_a_dish_is_understood(text: str, foods: list[str]) -> None:
    assert [str(food) for food in understand(text).query.foods] == foods


@pytest.mark.parametrize(
    "text",
    [
        "a wild night with red wine",
        "a wine bar in Lyon",
        "un buen vino, bonito y barato",
        "te wild",
    ],
)
def test_what_only_sounds_like_a_dish_is_none(text: str) -> None:
    assert understand(text).query.foods == ()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_food_has_eight_words_in_every_language(language: Language) -> None:
    known = {
        food: sum(
            lexicon.languages()[key] & {language, "*"} != frozenset()
            and any(each.field == "foods" and food in each.values for each in meanings)
            for key, meanings in lexicon.phrases().items()
        )
        for food in Food
    }
    assert {food: count for food, count in known.items() if count < 8} == {}
