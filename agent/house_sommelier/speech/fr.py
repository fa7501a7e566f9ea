"""What the house sommelier says, in French."""

from collections.abc import Mapping
from typing import Final

from agent.house_sommelier.speech.keys import PhraseKey

SENTENCES: Final[Mapping[PhraseKey, str]] = {
    "hello": (
        "Bonjour ! Dites-moi un plat, une couleur ou un prix, et je vous trouve une bouteille."
    ),
    "thanks": "Avec plaisir. Je suis là dès qu'il vous faut une autre bouteille.",
    "help": (
        "Je cherche dans la cave par plat, couleur, cépage, pays ou région, douceur, "
        "corps, prix et allergènes. Par exemple : « un blanc sec et pas cher pour du "
        "saumon »."
    ),
    "ask": (
        "Que puis-je chercher ? Une couleur, un plat ou un prix suffit : « un rouge "
        "pour de l'agneau, pas trop cher », par exemple."
    ),
    "knowledge": (
        "Pour l'instant je ne peux que chercher dans la cave, et je préfère ne pas "
        "improviser une réponse. Donnez-moi un plat, une couleur, un cépage ou un prix."
    ),
    "passage": "Voici ce qu'en dit ma bibliothèque :",
    "off_topic": (
        "Cela dépasse ma cave, hélas : je ne m'y connais qu'en vin. Dites-moi ce qu'il "
        "y a à table, et je trouve la bouteille."
    ),
    "rude": (
        "Je regrette de ne pas vous avoir aidé. Dites-moi ce qu'il y a à table, ce que vous aimez "
        "ou votre budget, et je cherche à nouveau."
    ),
    "error": ("Je suis désolé : je n'ai pas pu consulter la cave. Redemandez-moi dans un instant."),
    "nothing": "Je n'ai rien trouvé pour : {criteria}.",
    "nothing_named": (
        "Je n'ai rien trouvé dans la cave pour « {name} ». Une couleur, un plat ou un "
        "prix m'aiderait davantage."
    ),
    "without": "Sans {limit}, il y en aurait {count}",
    "and_without": "sans {limit}, {count}",
    "no_way": (
        "Renoncer à un seul critère ne suffit pas ; essayez une autre couleur, un "
        "autre plat ou un autre prix."
    ),
    "found": "Votre demande : {criteria}. Voici ce qui convient le mieux :",
    "found_any": "Dans la cave, à déboucher sans hésiter :",
    "similar": "Dans le même esprit, la cave propose :",
    "details": "Voici ce que j'en sais.",
    "not_named": "Je ne vois pas « {name} » dans la cave.",
    "all_shown": "Vous avez tout vu pour cela. Changeons-nous la couleur, le plat ou le prix ?",
    "gone": (
        "Je ne trouve plus ce vin dans la cave. Dites-moi ce qui vous plaisait, et "
        "j'en cherche un autre."
    ),
    "look_again": "Changez cela, et je cherche à nouveau.",
    "add_price": "Donnez-moi un prix maximum, et j'affine.",
    "add_food": "Dites-moi ce que vous mangerez, et je choisirai plus précisément.",
    "add_place": "Je peux me limiter à un pays ou à un cépage, si vous en avez un favori.",
    "add_taste": "Je peux aussi chercher moins cher, plus léger ou plus corsé.",
    "suits": "accords : {foods}",
    "contains": "Contient : {allergens}.",
    "sold_out": "Pas en stock pour le moment.",
    "up_to": "jusqu'à {price}",
    "around": "environ {price}",
    "low_price": "à petit prix",
    "high_price": "à un prix plus élevé",
    "at_least": "à partir de {price}",
    "care_pregnant": (
        "Avec un bébé en route ou au sein, je ne sers rien d'alcoolisé. Voici des vins "
        "sans alcool :"
    ),
    "care_minor": "Je ne propose pas d'alcool aux mineurs. Voici des vins sans alcool :",
    "care_driving": (
        "Pour qui prend le volant, je ne sers pas d'alcool. Voici des vins qui n'en ont pas :"
    ),
    "care_health": "Alors sans alcool, bien sûr. Voici des vins qui n'en ont pas :",
    "care_none": (
        "Je préfère ne pas recommander d'alcool ici, et la cave n'a pas de vin sans "
        "alcool qui convienne. Un bon jus de raisin, un thé ou un verjus pétillant se "
        "prêtent aussi bien à un toast."
    ),
    "cheapest": (
        "Je n'ai rien de moins cher pour cela. Changeons-nous la couleur, le plat ou l'origine ?"
    ),
    "all_excluded": (
        "Tout ce que j'ai trouvé pour cela contient ce que vous avez exclu. "
        "Changeons-nous la couleur, le plat ou le prix ?"
    ),
    "leaving_out": "sans {names}",
    "unknown_currency": (
        "Je ne sais pas convertir {currency}, le prix n'est donc pas pris en compte ; "
        "donnez-moi une limite en euros."
    ),
    "check_label": (
        "La liste dit ce qui est habituel : pour les allergènes, vérifiez aussi l'étiquette."
    ),
    "other_allergens": (
        "Ma liste ne connaît que les sulfites, l'œuf, le lait et le poisson : pour le "
        "reste, vérifiez l'étiquette."
    ),
    "fits_dish": "Oui, il va bien avec : {foods}.",
    "fits_not": "Ma liste ne le cite pas pour : {foods} ; je chercherais plutôt un autre vin.",
    "acidity_high": "avec une acidité vive",
    "tannin_high": "avec des tanins fermes",
    "tannin_low": "avec des tanins souples",
    "from_grapes": "à base de {grapes}",
    "tasting_notes": "Note de la cave (en anglais seulement) : « {notes} »",
    "which": "Je ne vous en ai pas montré autant. Duquel parlez-vous, et que faut-il changer ?",
    "favourite": "Parmi ceux-ci, j'ouvrirais d'abord celui-ci :",
    "no_model": (
        "Aucun modèle de langue n'est configuré ici : je réponds par des règles simples, "
        "d'après la liste de la cave."
    ),
    "model_down": (
        "Mon modèle de langue ne m'aide pas en ce moment : ceci vient directement de la liste "
        "de la cave."
    ),
    "declined": (
        "Je préfère ne pas répondre à cela. Demandez-moi un vin, un plat ou une occasion, et "
        "je suis tout à vous."
    ),
    "failed": (
        "Je suis désolé : quelque chose a mal tourné de mon côté et je n'ai pas pu répondre. "
        "Redemandez-moi dans un instant."
    ),
    "holds": "Oui : la liste de la cave indique {allergens}.",
    "holds_not": "La liste de la cave n'indique pas : {allergens} ; vérifiez aussi l'étiquette.",
    "unknown_vegan": "La liste de la cave ne dit pas s'il est végan.",
    "not_vegan": "Il n'est pas végan : la liste de la cave indique {allergens}.",
    "is_alcohol": "Il fait {abv} % vol.",
    "is_price": "Il coûte environ {price}.",
    "is_grapes": "Cépages : {grapes}.",
    "is_organic": "Oui, la liste de la cave le dit bio.",
    "is_vintage": "Le millésime est {year}.",
    "is_no_vintage": "Il n'est pas millésimé.",
    "is_origin": "Origine : {places}.",
    "is_so": "Il est {trait}.",
    "unknown_organic": "La liste de la cave ne dit pas s'il est bio.",
    "unknown_alcohol": "La liste de la cave ne dit pas combien d'alcool il contient.",
    "unknown_sweetness": "La liste de la cave ne dit pas s'il est sec ou doux.",
    "unknown_price": "La liste de la cave ne dit pas ce qu'il coûte.",
    "unknown_grapes": "La liste de la cave n'indique pas ses cépages.",
    "unknown_body": "La liste de la cave ne dit pas s'il est léger ou puissant.",
    "no_allergens": "La liste de la cave n'indique aucun allergène ; vérifiez aussi l'étiquette.",
    "in_order_cheapest": "Les moins chers d'abord{criteria} :",
    "in_order_dearest": "Les plus chers d'abord{criteria} :",
    "library_closing": (
        "Ma bibliothèque n'existe qu'en anglais. Si vous cherchez un vin, donnez-moi un plat, "
        "une couleur, un cépage ou un prix, et je vous trouve une bouteille dans la cave."
    ),
    "is_in_stock": "Il est en stock.",
}
