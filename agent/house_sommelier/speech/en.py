"""What the house sommelier says, in English."""

from collections.abc import Mapping
from typing import Final

from agent.house_sommelier.speech.keys import PhraseKey

SENTENCES: Final[Mapping[PhraseKey, str]] = {
    "hello": "Hello! Tell me a dish, a colour or a price, and I find a bottle for you.",
    "thanks": "With pleasure. I am here whenever you need another bottle.",
    "help": (
        "I search the cellar for you: by dish, colour, grape, country or region, "
        "sweetness, body, price and allergens. Try “an inexpensive dry white for "
        "salmon”, and then “something cheaper” or “more like the second one”."
    ),
    "ask": (
        "What may I look for? A colour, a dish or a price is enough: “a red for lamb, "
        "not too expensive”, say."
    ),
    "knowledge": (
        "I can only search the cellar right now, so I would rather not improvise an "
        "answer to that. Name a dish, a colour, a grape or a price, and I find you "
        "bottles."
    ),
    "passage": "This is what my library has:",
    "off_topic": (
        "That is beyond my cellar, I am afraid: I only know my way around wine. Tell "
        "me what is on the table, and I find a bottle for it."
    ),
    "rude": (
        "I am sorry that I have not been of help. Tell me what is on the table, what you like or "
        "what you want to spend, and I look again."
    ),
    "error": (
        "I am sorry: I could not look into the cellar just now. Please ask me again in a moment."
    ),
    "nothing": "I found no {criteria}.",
    "nothing_named": (
        "I found nothing in the cellar for “{name}”. A colour, a dish or a price helps me more."
    ),
    "without": "Without {limit} there {are} {count}",
    "and_without": "without {limit}, {count}",
    "no_way": "Giving up a single wish does not help; try another colour, dish or price.",
    "found": "I looked for {criteria}; {these} best.",
    "found_any": "Worth opening from the cellar:",
    "similar": "In a similar vein, the cellar has:",
    "details": "Here is what I know.",
    "not_named": "I do not see “{name}” in the cellar.",
    "all_shown": (
        "You have seen all I have for that. Shall we change the colour, the dish or the price?"
    ),
    "gone": (
        "I cannot find that wine in the cellar any more. Tell me what you liked about "
        "it, and I look for another."
    ),
    "look_again": "Change that, and I look again.",
    "add_price": "Tell me a price limit, and I narrow it down.",
    "add_food": "Tell me what you will eat, and I choose more precisely.",
    "add_place": "I can narrow it to a country or a grape, if you have a favourite.",
    "add_taste": "I can also look for something cheaper, lighter or fuller.",
    "suits": "suits {foods}",
    "contains": "Contains {allergens}.",
    "sold_out": "Not in stock at the moment.",
    "up_to": "up to {price}",
    "around": "around {price}",
    "low_price": "at a low price",
    "high_price": "at a higher price",
    "at_least": "at {price} or more",
    "care_pregnant": (
        "With a baby on the way or at the breast I pour nothing with alcohol. These "
        "are wines without:"
    ),
    "care_minor": "I offer nothing with alcohol to anyone under age. These are wines without:",
    "care_driving": "Whoever drives gets no alcohol from me. These are wines without:",
    "care_health": "Then no alcohol, of course. These are wines without:",
    "care_none": (
        "I would rather not recommend alcohol here, and the cellar has no alcohol-free "
        "wine that fits. A good tonic, a tea or a verjus spritz makes a fine toast too."
    ),
    "cheapest": (
        "I have nothing cheaper for that. Shall we change the colour, the dish or the region?"
    ),
    "all_excluded": (
        "Everything I found for that has something you ruled out. Shall we change the "
        "colour, the dish or the price?"
    ),
    "leaving_out": "leaving out {names}",
    "unknown_currency": (
        "I cannot convert {currency}, so the price is not taken into account; tell me "
        "a limit in euros, dollars or pounds."
    ),
    "check_label": (
        "The cellar list goes by what is typical: please check the label for allergens as well."
    ),
    "other_allergens": (
        "My list knows only sulphites, egg, milk and fish: for everything else please "
        "check the label."
    ),
    "fits_dish": "Yes, it suits {foods}.",
    "fits_not": "My list does not name it for {foods}; I would look for another wine there.",
    "acidity_high": "with fresh acidity",
    "tannin_high": "with firm tannins",
    "tannin_low": "with soft tannins",
    "from_grapes": "from {grapes}",
    "tasting_notes": "{notes}",
    "which": "I have not shown you that many. Which one do you mean, and what should be different?",
    "favourite": "Of these I would open this one first:",
    "no_model": (
        "No language model is configured here, so I answer by simple rules from the cellar list."
    ),
    "model_down": (
        "My language model is of no help right now, so this comes straight from the cellar list."
    ),
    "declined": (
        "I'd rather not answer that. Ask me for a wine, a dish or an occasion, and I'm all yours."
    ),
    "failed": (
        "Sorry, something went wrong on my side and I could not answer. Please ask me again "
        "in a moment."
    ),
    "holds": "Yes: the cellar list names {allergens} in it.",
    "holds_not": "The cellar list names no {allergens} in it; please check the label.",
    "unknown_vegan": "The cellar list does not say whether it is vegan.",
    "not_vegan": "It is not vegan: the cellar list names {allergens} in it.",
    "is_alcohol": "It has {abv} % vol.",
    "is_price": "It costs about {price}.",
    "is_grapes": "It is made from {grapes}.",
    "is_organic": "Yes, the cellar list calls it organic.",
    "is_vintage": "The vintage is {year}.",
    "is_no_vintage": "It has no vintage.",
    "is_origin": "It comes from {places}.",
    "is_so": "It is {trait}.",
    "unknown_organic": "The cellar list does not say whether it is organic.",
    "unknown_alcohol": "The cellar list does not say how much alcohol it has.",
    "unknown_sweetness": "The cellar list does not say how dry or sweet it is.",
    "unknown_price": "The cellar list does not say what it costs.",
    "unknown_grapes": "The cellar list does not name its grapes.",
    "unknown_body": "The cellar list does not say how light or full it is.",
    "no_allergens": "The cellar list names no allergens in it; please check the label.",
    "in_order_cheapest": "The cheapest I have come first{criteria}:",
    "in_order_dearest": "The most expensive I have come first{criteria}:",
    "library_closing": "Name a dish, a colour, a grape or a price, and I find you bottles.",
    "is_in_stock": "It is in stock.",
}
