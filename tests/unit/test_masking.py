"""What is hidden in a trace before it leaves, and what is not."""

import json
import time
from collections.abc import Callable, Collection
from copy import deepcopy

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.engine.messages import Usage
from agent.engine.span import PromptRef, ScoreRecord, SpanRecord, TraceRecord
from agent.tracing.masking import DEEPEST, Masking, mask, prepared

NAMES = ("José", "Müller", "anna_k", "Al", "田中", "O'Brien", "Anna Maria 🍷")
SECRETS = ('s3cr3t/with"quote', "secret", "12:telegram")

HEX = "0fd3a1c29b7e4455aa01"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
BOT_TOKEN = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"

HIDDEN = [
    # e-mail addresses
    ("write to anna@example.com.", "write to [email]."),
    ("Schreib an jörg.müller+wein@straße.example!", "Schreib an [email]!"),
    ("<a.b-c_d@sub.example.co.uk>", "<[email]>"),
    ("почта иван@почта.рф и всё", "почта [email] и всё"),
    ("mailto:x@example.xn--p1ai", "mailto:[email]"),
    ("jose\u0301@example.com", "[email]"),
    ("'a@example.com', 'b@example.com'", "'[email]', '[email]'"),
    # phone numbers, international
    ("+49 151 2345 6789", "[phone]"),
    ("ruf mich an: +49 (0) 30 1234567, ja?", "ruf mich an: [phone], ja?"),
    ("0033 6 12 34 56 78", "[phone]"),
    ("+1 (415) 555-0134", "[phone]"),
    ("+15125550134 please", "[phone] please"),
    ("c'est le +33 6 12 34 56 78", "c'est le [phone]"),
    ("+44 20 7946 0958", "[phone]"),
    ("+34 612 345 678", "[phone]"),
    ("+39-347-1234567", "[phone]"),
    ("+7 (916) 123-45-67", "[phone]"),
    ("tel:+4915123456789", "tel:[phone]"),
    ("電話は+81 90 1234 5678です", "電話は[phone]です"),
    # phone numbers, national
    ("030 1234567", "[phone]"),
    ("06 12 34 56 78", "[phone]"),
    ("06.12.34.56.78", "[phone]"),
    ("0151/23456789", "[phone]"),
    ("(030) 123 45 67", "[phone]"),
    ("020 7946 0958", "[phone]"),
    ("07700 900123", "[phone]"),
    ("044 668 18 00", "[phone]"),
    ("06-12345678", "[phone]"),
    ("0612345678", "[phone]"),
    ("0800-123456 (113 zegt)", "[phone] (113 zegt)"),
    ("Tel.: 030 1234567 und mehr", "Tel.: [phone] und mehr"),
    ("030 1234567 2015 2016", "[phone] 2015 2016"),
    ("415-555-0134", "[phone]"),
    ("1-800-555-0199", "[phone]"),
    ("call (415) 555-0134 now", "call [phone] now"),
    ("8 (916) 123-45-67", "[phone]"),
    ("llámame,\ntel: 612 34 56 78", "llámame,\ntel: [phone]"),
    ("teléfono: 612 34 56 78", "teléfono: [phone]"),
    ("WhatsApp 347 1234567", "WhatsApp [phone]"),
    ("٠٦ ١٢ ٣٤ ٥٦ ٧٨", "[phone]"),
    # payment cards
    ("4111 1111 1111 1111", "[card]"),
    ("4111-1111-1111-1111, 12/27", "[card], 12/27"),
    ("my card is 5555555555554444", "my card is [card]"),
    ("378282246310005", "[card]"),
    ("3782 822463 10005", "[card]"),
    ("4111 1111 1111 1111 123", "[card]"),
    ("4111_1111_1111_1111, 4111,1111,1111,1111", "[card], [card]"),
    ("4111;1111;1111;1111 3782_822463_10005", "[card] [card]"),
    ("4111:1111:1111:1111.", "[card]."),
    ("[48.2082, 16.3738]", '"[location]"'),
    ("3500 4111 1111 1111 1111", "3500 [card]"),
    ("6304000000000000", "[card]"),
    ("卡号4111111111111111", "卡号[card]"),
    # cards that are split otherwise
    ("4111/1111/1111/1111", "[card]"),
    ("4111 1111\n1111 1111", "[card]"),
    ("4111\n1111\n1111\n1111", "[card]"),
    ("4111 1111 / 1111 1111\r\nplease", "[card]\r\nplease"),
    ("411111 1111111111", "[card]"),
    ("5555-5555-5555-\n4444", "[card]"),
    ("3782|822463|10005", "[card]"),
    ("4111.1111.1111.1111, 123", "[card], 123"),
    # mobile numbers without a +
    ("98765 43210", "[phone]"),
    ("my no is 9876543210", "my no is [phone]"),
    ("91 98765 43210 or 919876543210", "[phone] or [phone]"),
    ("91-9876543210, 98765-43210", "[phone], [phone]"),
    ("138 1234 5678", "[phone]"),
    ("138.1234.5678", "[phone]"),
    ("我的电话13812345678。", "我的电话[phone]。"),
    ("手机 138-1234-5678", "手机 [phone]"),
    ("86 138 1234 5678", "[phone]"),
    ("8613812345678, 5511912345678", "[phone], [phone]"),
    ("11 9 1234-5678 ou 55 11912345678", "[phone] ou [phone]"),
    ("(+91) 98765 43210", "([phone]"),
    ("(11) 91234-5678", "[phone]"),
    ("11 91234-5678 ou 11912345678", "[phone] ou [phone]"),
    ("55 11 91234-5678", "[phone]"),
    ("liga (21) 9 8765-4321 já", "liga [phone] já"),
    ("(415 555 0134)", "([phone])"),
    # where somebody is
    ("I am at 48.85661, 2.35222 now", "I am at [location] now"),
    ("-33.8688 151.2093", "[location]"),
    ("48,85661; 2,35222", "[location]"),
    ("48.8566° N, 2.3522° E", "[location]"),
    ("N 48.8566, E 2.3522 and 48.8566N 2.3522E", "[location] and [location]"),
    ("geo:48.8566,2.3522?z=15", "geo:[location]?z=15"),
    ("https://maps.example/?q=48.85,2.35&z=1", "https://maps.example/?q=[location]&z=1"),
    ("https://maps.example/@48.85,2.35,15z", "https://maps.example/@[location],15z"),
    ("48°51'24\"N 2°21′08″E", "[location] [location]"),
    ("lat: 48.85 lon=2.35", "lat: [location] lon=[location]"),
    ('{"latitude": 48.8566, "w', '{"latitude": [location], "w'),
    ("plus code 8FW4V75V+8Q", "plus code [location]"),
    ("52.5200 N / 13.4050 E", "[location]"),
    ("Breitengrad 52.52, Längengrad 13.40", "Breitengrad [location], Längengrad [location]"),
    ("?mlat=52.52&mlon=13.40", "?mlat=[location]&mlon=[location]"),
    # IBANs
    ("DE89 3704 0044 0532 0130 00", "[iban]"),
    ("DE89370400440532013000", "[iban]"),
    ("FR14 2004 1010 0505 0001 3M02 606 merci", "[iban] merci"),
    ("GB82 WEST 1234 5698 7654 32 from me", "[iban] from me"),
    ("it60x0542811101000000123456", "[iban]"),
    # tokens
    (f"token {BOT_TOKEN}", "token [token]"),
    (f"https://api.telegram.org/bot{BOT_TOKEN}/getMe", "https://api.telegram.org/bot[token]/getMe"),
    ("sk-proj-abcDEF0123456789abcd", "[token]"),
    ("pk-lf-01234567-89ab-cdef-0123-456789abcdef", "[token]"),
    ("sk-lf-01234567-89ab-cdef-0123-456789abcdef", "[token]"),
    ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "[token]"),
    ("github_pat_11ABCDEFG0123456789_abcdefghij", "[token]"),
    ("xoxb-123456789012-abcdefghij", "[token]"),
    ("AKIAIOSFODNN7EXAMPLE", "[token]"),
    (JWT, "[token]"),
    ("sk-ant-api03-abcDEF0123456789_abcd-xyz", "[token]"),
    ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "[token]"),
    ("hf_abcdefghijklmnopqrSTUVWXyz0123456789", "[token]"),
    ("gsk_abcdefghijklmnopqrstuvwxyz0123456789", "[token]"),
    ("xapp-1-A0123456789-1234567890123-abcdef", "[token]"),
    ("rk_test_51H8abcdefghijklmnopqrstuv", "[token]"),
    ("pcsk_5fGh2x_SrzyWdnrP7euVtiQO0dgT2fXWETxRDJQO9", "[token]"),
    ("csk-e11876c88d575ecaf670e682c98012643c8c8347abcd", "[token]"),
    ("rnd_52397d509426a2abc646587e06a19f08", "[token]"),
    ("e2b_70e62876e728559613777a1a7051fa57", "[token]"),
    ("glpat-abcDEF0123456789_abc", "[token]"),
    ("SG.abcdefghijklmnop0123.abcdefghijklmnopqrstuvwxyz0123456789", "[token]"),
    ("dp AC0123456789abcdef0123456789abcdef", "dp [token]"),
    ("cfut_p8Lq3ZxVn2Tg7RkWm5Yc9Bd4Hs6JfQa1Ue0Xi", "[token]"),
    ("AQ.Ab8RN6Kq2mZt7VxLw4Yc9Pd3Hs5JfQa1Ue0XiBn", "[token]"),
    ("vercel_blob_rw_T4kq9XmZ2vLw7Yc3_Pd8Hs5JfQa1Ue0XiBnRg6", "[token]"),
    ("it is EAACEdEose0cBAJ2kPz7XqLw4Yc9Pd3Hs5JfQa", "it is [token]"),
    ("zQ3kp9XmZ2vLw7Yc3Pd8Hs5JfQa1Ue0XiBnRg6t", "[token]"),
    ("https://hooks.slack.com/services/T00000000/B00000000/X0X0X0X0", "https://[token]"),
    ("dapi0123456789abcdef0123456789abcdef", "[token]"),
    ("MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs", "[token]"),
    (
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1",
        "AWS_SECRET_ACCESS_KEY=[token]",
    ),
    ("my api key is aZ09bY18cX27dW36eV45", "my api key is [token]"),
    (f"Authorization: Bearer {HEX}", "Authorization: Bearer [token]"),
    ("Authorization: Basic dXNlcjpwYXNzd29yZDE=", "Authorization: Basic [token]"),
    (f"api_key={HEX}", "api_key=[token]"),
    (f'SECRET: "{HEX}"', 'SECRET: "[token]"'),
    ("token = aZ09bY18cX27dW36eV45+/==", "token = [token]"),
    ("key=q7w8e9r0t1z2u3i4o5", "key=[token]"),
    ("password: 12345678", "password: [token]"),
    ("Passwort: geheim123", "Passwort: [token]"),
    ("mot de passe : soleil75!", "mot de passe : [token]"),
    ("пароль: qwerty12", "пароль: [token]"),
    ("postgres://bot:p@ss@db.example/wines", "postgres://[token]@db.example/wines"),
    # names
    ("Hello José!", "Hello [name]!"),
    ("hola JOSE, hola jose\u0301", "hola [name], hola [name]"),
    ("Herr Müller, Mueller, MULLER", "Herr [name], [name], [name]"),
    ("https://t.me/anna_k or @anna_k", "https://t.me/[name] or [name]"),
    ("Al says", "[name] says"),
    ("田中さん", "[name]さん"),
    ("Joséさん、こんにちは", "[name]さん、こんにちは"),
    ("Mr. o’brien's dinner", "Mr. [name]'s dinner"),
    ("Anna Maria and Maria", "[name] and [name]"),
    ("_José_ and **José**", "_[name]_ and **[name]**"),
    ("Ｊｏｓé! Jo\u00adsé, Jo\u200bsé", "[name]! [name], [name]"),
    # letters and spaces that look like others
    ("ada＠example.com", "[email]"),
    ("+\u200b49 151 23456789", "[phone]"),
    ("+49 151\u2009234\u200956789", "[phone]"),
    ("＋４９ １５１ ２３４５６７８９", "[phone]"),
    ("4111\u20071111\u20071111\u20071111", "[card]"),
    # addresses and numbers as they stand elsewhere
    ("https://x.example/?email=ada%40example.com&x=1", "https://x.example/?email=[email]&x=1"),
    ("my number is 612 34 56 78", "my number is [phone]"),
    ("ring 612 345 678 or 612345678", "ring [phone] or [phone]"),
    ("347 1234567, 347 123 4567", "[phone], [phone]"),
    ("415 555 0134 or 4155550134", "[phone] or [phone]"),
    ("8 912 345-67-89", "[phone]"),
    ("491512345678", "[phone]"),
    # credentials
    ("my password is hunter2", "my password is [token]"),
    (f"?token={HEX}&x=1", "?token=[token]&x=1"),
    ("sk_live_51H8abcdefghijklmnopqrstuv", "[token]"),
    ("npm_abcdefghijklmnopqrstuvwxyz0123456789", "[token]"),
    (
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIB\n-----END RSA PRIVATE KEY-----",
        "[token]",
    ),
    # secrets, also where they stand within a word
    ('xs3cr3t/with"quotex', "x[secret]x"),
    ("bot12:telegram/", "bot[secret]/"),
    # JSON that was cut off still has its escapes
    (r'{"intro": "Hi\nJosé, \n+49 151 23456789", "w', r'{"intro": "Hi\n[name], \n[phone]", "w'),
]

SHOWN = [
    # prices and amounts
    "24.50 EUR",
    "under 25 euros, at most 1.250,00 €",
    "between 10-15 € or 100 - 150 $",
    "1 000 000 COP and 12 500 000 Ft",
    "3@12.50 each",
    "45 50 60 70 80 90 100 110",
    "0.75 l, 0,375 l, 1.5 l",
    "USD 2,499,000.00",
    # vintages
    "2015 2016 2017",
    "2015 2016 2017 2018 2019",
    "2015-2019",
    "2005/2006/2007",
    "1982, 1985, 1990, 1996",
    "die Jahrgänge 09 10 11 12",
    "05 06 07 08 09",
    "01 02 03 04 05 06 07 08",
    "05/2019 - 06/2021",
    "01.2015-12.2019",
    "März 2019 bis 04 2020",
    # dates and times
    "2024-05-01T08:00:00Z",
    "2024-05-01 2024-06-01",
    "01.02.2023",
    "01/02/2023 - 05/02/2023",
    "01-02-2023",
    "01 02 2023 14 30",
    "01.02.23 - 05.02.23",
    "0930-1730",
    "09.00-12.00 14.00-18.30",
    "08:30-17:45",
    "1712345678",
    "1712345678901",
    "250 300 350 euros, or 500 600 700",
    "650 700 750 ml, 300 400 2015",
    "100 000 000 bottles, 500000000 in all",
    "3760123456780",
    # percentages, scores, coordinates
    "13.5% and 100 %",
    "score 0.8412345678901234",
    "0.8412, 0.9123 and 1.0845, 1.0921",
    "12.1, 13.5 and 45.12 46.30",
    "45° N, 12° to 14° C, 13.5° and 5' walk",
    "03.2019 05.2021, 01.2015, 12.2019",
    "1.500, 2.300 Flaschen",
    "latest 12.50, long 75.25, Latour 2015.",
    "94/100 95/100 96/100",
    # ids, paths, hashes
    "baudry-chinon-2020",
    "domaine-415-555-2015",
    "les-granges-06-12-34-56-78",
    "jose-cuvee-de-reserve-2019",
    "documents/jose/notes.md",
    "docs/0612345678.pdf",
    "call_abc123DEF456ghi789",
    "call_0612345678",
    "call_4111111111111111",
    "call_4111_1111_1111_1111",
    "4111_1111_1111_1111_a",
    "7,4111,1111,1111,1111",
    "4111,1111,1111,1111,8",
    "4111,1111_1111,1111",
    "4111, 1111, 1111, 1111",
    "4111,1111,1111,1112",
    "2018,2019,2020,2021",
    "0.4111,1111,1111,1111",
    "[0.1234, 0.5678]",
    "[48.2082, 16.3738, 4.1, 5.2]",
    "[12.5, 13.5]",
    "[4111, 1111, 1111, 1111]",
    "550e8400-e29b-41d4-a716-446655440000",
    "01234567-0123-4123-8123-012345678901",
    "9f86d081884c7d659a2feaa0c55ad015",
    "chatcmpl-B9MBs8CjcvOlj6YkXQ",
    "TheSommelierAnswersInWholeSentencesV2AndTraces4",
    "550E8400-E29B-41D4-A716-446655440000",
    "Chateau-Margaux-2015-750ml-6x-OWC-in-Wood",
    "prompt_tokens: 123456, key: value",
    "key: baudry-chinon-les-granges-2020",
    "key: documents/Loire-2019.md",
    "key: chateaumargaux2015",
    "the key to Barolo: patience and tannin",
    "tokens = 1200000",
    "password: please choose one",
    "the bearer of good news",
    "risk-averse-people-should-buy-burgundy",
    "sk-learn-is-a-library-for-trees",
    "gloria-saint-julien-2018, sk-vineyard-of-the-lake-2019",
    "secret_ingredient: the secret is patience and 12 months",
    "hf_model, npm_config_registry, ph_4",
    "4500/5200/6100/7300\n1985\n1990\n1995\n2005",
    "3760123456780\n3760123456797",
    "lot 150 2015 2016, 12 2015-2019, 12 9 2015-2016",
    "Maison N 12.5 and E 13.5, S 2015",
    "12 x 0.75 l / 6 x 1.5 l\n24 x 0.375 l",
    # words
    "Josephine, Joseph and al dente, also aloud",
    "[link](https://example.com/a?b=c#d) @ 20",
    "user@localhost",
    "https://example.com/@someone/2015",
    "4111 1111 1111 1112",
    "DE00 1234 5678 9012 3456 78",
    "Chablis 1er Cru 2018 12x0.75",
    "1 2 3 4 5 6 7 8 9 10 11 12 13",
    "+2 +3 +5",
    "7-8, 9-10, 11-12",
    "Rotwein für 4 Personen, 2 Flaschen, 30 €",
    "Ein Bordeaux von 2010 für 0 bis 99 Euro",
    "красное к баранине до 2500 рублей 2015 года",
    "羊肉に合う赤ワイン、3000円以下、2015年",
    "vin rouge 2015/16 à 12,50 € le 01/02",
    '{"wine_id": "baudry-chinon-2020", "price": 24.5, "vintages": [2015, 2016, 2017]}',
    '{"a": [1, 2, 3], "b": null, "c": true, "d": "\\u00e9\\n"}',
    "",
]


def masked_value(
    value: object, names: Collection[str] = (), secrets: Collection[str] = ()
) -> object:
    return Masking("masked", names, secrets).value(value)


def test_the_tables_are_large() -> None:
    assert len(HIDDEN) >= 60
    assert len(SHOWN) >= 60


@pytest.mark.parametrize(("text", "masked"), HIDDEN)
def test_hidden(text: str, masked: str) -> None:
    assert mask(text, NAMES, SECRETS) == masked


@pytest.mark.parametrize("text", SHOWN)
def test_shown(text: str) -> None:
    assert mask(text, NAMES, ("123456:secret-of-nobody",)) is text


def test_a_value_is_hidden_by_its_key() -> None:
    given_ = {
        "api_key": HEX,
        "password": "hunter2",
        "key": "baudry-chinon-2020",
        "max_tokens": "900",
    }
    assert masked_value(given_) == given_ | {"api_key": "[token]", "password": "[token]"}


def test_a_key_that_names_nothing_but_a_credential_hides_whatever_it_is() -> None:
    given_ = {"api_key": "abcdefgh12345678", "Authorization": "abc-def", "password": "please"}
    assert masked_value(given_) == dict.fromkeys(given_, "[token]")
    words = {"authorization": "as you like", "key": "rose"}
    assert masked_value(words) is words


def test_coordinates_are_hidden_by_their_keys() -> None:
    place: dict[str, object] = {"latitude": 48.85, "longitude": 2, "zoom": 15.5}
    hidden = place | {"latitude": "[location]", "longitude": "[location]"}
    assert masked_value({"location": place}) == {"location": hidden}
    region: dict[str, object] = {"geo": "Bordeaux", "coordinates": None}
    assert masked_value(region) is region
    assert masked_value({"coordinates": [2.3522, 48.8566]}) == {"coordinates": "[location]"}
    places = {"a": (16.37382, -48.20821), "b": [[48.2082, 16.3738, 171.0]], "c": [48.2082, 0.5]}
    assert masked_value(places) == places | {"a": "[location]", "b": ["[location]"]}
    assert Masking("full", (), ()).value(places) is places
    assert json.loads(mask(json.dumps(place))) == hidden
    assert Masking("full", (), ()).value(place) is place


def test_a_guest_called_rose_does_not_hide_every_rose() -> None:
    text = "Rose likes rosé, a dry rose, Clos-de-la-rose and ROSE"
    assert mask(text, ("Rose",)) == text.replace("Rose likes", "[name] likes")
    assert mask("Rose Müller likes rosé; rose müller", ("Rose Müller",)) == (
        "[name] likes rosé; [name]"
    )


def test_nested_data_is_masked_and_shared_where_nothing_changed() -> None:
    wines = [{"id": "baudry-chinon-2020", "price": 24.5, "vintages": (2015, 2016)}]
    asked = {"text": "Hello José", "wines": wines, "rose": "José", "card": 4111111111111111}
    before = deepcopy(asked)
    masked = masked_value([asked, wines], ("José", "rose"))
    assert masked == [
        {"text": "Hello [name]", "wines": wines, "rose": "[name]", "card": "[card]"},
        wines,
    ]
    assert isinstance(masked, list)
    assert masked[1] is wines
    assert masked[0]["wines"] is wines
    assert asked == before
    assert masked_value(wines, ("José",)) is wines


def test_keys_keep_names_and_nothing_else() -> None:
    assert masked_value({"rose": 1, "a@example.com": 2}, ("Rose",)) == {"rose": 1, "[email]": 2}


def test_equal_texts_that_are_different_objects_count_as_unchanged() -> None:
    text = json.dumps(["a \n b", "a \n b", "José"], indent=2)
    assert mask(text) is text


def test_data_of_unknown_kinds_is_masked_as_it_prints() -> None:
    class Person:
        def __str__(self) -> str:
            return "José, a@example.com"

    assert masked_value([Person(), None, True, 1.5, 7], ("José",)) == [
        "[name], [email]",
        None,
        True,
        1.5,
        7,
    ]


def test_data_that_is_too_deep_is_left_out() -> None:
    value: object = "a@example.com"
    for _ in range(5000):
        value = [value]
    masked = masked_value(value)
    for _ in range(DEEPEST + 1):
        assert isinstance(masked, list)
        (masked,) = masked
    assert masked == "[nested]"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ('{"card": 4111111111111111, "n": 1}', {"card": "[card]", "n": 1}),
        (r'{"a": "Hi\nanna@example.com"}', {"a": "Hi\n[email]"}),
        (r'{"a": "Hi\nJos\u00e9"}', {"a": "Hi\n[name]"}),
        (r'{"a": "{\"b\": \"\\n4111 1111 1111 1111\"}"}', {"a": '{"b": "\\n[card]"}'}),
        ('["s3cr3t/with\\"quote"]', ["[secret]"]),
        (f'{{"api_key": "{HEX}", "q": "José"}}', {"api_key": "[token]", "q": "[name]"}),
        ('"a@example.com"', "[email]"),
        (r'["\ud800 a@example.com"]', ["\ud800 [email]"]),
    ],
)
def test_json_in_a_text_stays_json(text: str, masked: object) -> None:
    found = mask(text, NAMES, SECRETS)
    assert json.loads(found) == masked
    assert found.encode()


def trace() -> TraceRecord:
    usage = Usage(100, 20, 10)
    prompt = PromptRef("sommelier", 3)
    root = SpanRecord(
        "0123456789abcdef",
        None,
        "turn",
        "agent",
        1712345678901234567,
        1712345678991234567,
        input="I am José, +49 151 23456789, key sk-proj-abcDEF0123456789abcd",
        output={"text": "Hello José"},
        metadata={"outcome": "answered", "note": "José, 12:telegram", "calls": 2},
        level="WARNING",
        model="gpt-4o",
        usage=usage,
        cost_usd=0.01,
        prompt=prompt,
    )
    tool = SpanRecord("1123456789abcdef", root.span_id, "tool.find_José", "tool", 1712345678901)
    scores = {
        "user_feedback": ScoreRecord("user_feedback", 0.0, "BOOLEAN", "ask José, 12:telegram"),
        "outcome": ScoreRecord("outcome", "answered", "CATEGORICAL"),
    }
    return TraceRecord("ab" * 16, "chat", "user", ("José",), [root, tool], scores)


def expected_trace() -> TraceRecord:
    made = trace()
    made.names = ()
    return made


def test_a_masked_trace_keeps_its_shape_and_loses_what_is_personal() -> None:
    given_, expected = trace(), expected_trace()
    root, tool = expected.spans
    root.input = "I am [name], [phone], key [token]"
    root.output = {"text": "Hello [name]"}
    root.metadata["note"] = "[name], [secret]"
    tool.name = "tool.find_[name]"
    comment = "ask [name], [secret]"
    expected.scores["user_feedback"] = ScoreRecord("user_feedback", 0.0, "BOOLEAN", comment)
    assert prepared(given_, "masked", SECRETS[2:]) == expected
    assert given_ == trace()


def test_tags_and_reasons_are_masked_and_a_reason_goes_with_the_content() -> None:
    given_ = trace()
    given_.tags = ("retried", "tool_error:find_José")
    given_.root.metadata["reason"] = "José is no wine that a tool found"
    masked = prepared(given_, "masked", ())
    assert masked.tags == ("retried", "tool_error:find_[name]")
    assert masked.root.metadata["reason"] == "[name] is no wine that a tool found"
    assert "reason" not in prepared(given_, "none", ()).root.metadata


def test_a_full_trace_loses_credentials_alone() -> None:
    expected = expected_trace()
    root, _ = expected.spans
    root.input = "I am José, +49 151 23456789, key [token]"
    root.metadata["note"] = "José, [secret]"
    comment = "ask José, [secret]"
    expected.scores["user_feedback"] = ScoreRecord("user_feedback", 0.0, "BOOLEAN", comment)
    assert prepared(trace(), "full", SECRETS[2:]) == expected


def test_a_trace_without_content_keeps_what_is_measured() -> None:
    expected = expected_trace()
    root, tool = expected.spans
    root.input = root.output = None
    root.metadata["note"] = "[name], [secret]"
    tool.name = "tool.find_[name]"
    expected.scores["user_feedback"] = ScoreRecord("user_feedback", 0.0, "BOOLEAN")
    assert prepared(trace(), "none", SECRETS[2:]) == expected


def test_what_the_turn_adds_later_is_not_in_the_prepared_trace() -> None:
    given_ = trace()
    made = prepared(given_, "masked", ())
    given_.spans[0].metadata["late"] = "José"
    given_.spans.clear()
    given_.scores.clear()
    assert (len(made.spans), len(made.scores), "late" in made.spans[0].metadata) == (2, 2, False)


PIECES = st.sampled_from(
    [
        *'0123456789 +-()./@:,[]"\\\n',
        *("a", "José", "Al", "[name]", "[phone]", "key=", "://", "a@b.de", "06 12", "+49 151"),
        *("2345 6789", "4111 1111", "1111 1111", "DE89 3704 0044 0532 0130 00"),
    ]
)
PLANTED = st.sampled_from(
    ["anna@example.com", "4111 1111 1111 1111", "5555555555554444", BOT_TOKEN, JWT, *SECRETS[:1]]
)
TEXTS = st.text() | st.lists(PIECES, max_size=30).map("".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS | PLANTED,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(TEXTS)
@example("\ud800 06 12 34 56 78 \udfff")
@example("[" * 100_000)
@example("1" * 5000)
@example('["' + "1" * 5000 + '", ' + "1" * 5000 + "]")
def test_any_text_is_masked_and_masking_it_again_changes_nothing(text: str) -> None:
    masked = mask(text, NAMES, SECRETS)
    assert mask(masked, NAMES, SECRETS) == masked
    assert len(masked) <= 8 * len(text) + 8


@given(JSON.filter(lambda value: isinstance(value, list | dict | str)), st.booleans())
def test_json_stays_json_whatever_it_holds(value: object, ascii_only: bool) -> None:
    json.loads(mask(json.dumps(value, ensure_ascii=ascii_only), NAMES, SECRETS))


@given(st.text(), PLANTED, st.text(), st.booleans())
def test_what_was_planted_never_survives(
    before: str, planted: str, after: str, as_json: bool
) -> None:
    text = f"{before} {planted}, {after}"
    masked = mask(json.dumps({"text": [text]}) if as_json else text, NAMES, SECRETS)
    assert planted not in masked
    assert json.dumps(planted)[1:-1] not in masked


@given(JSON)
def test_data_given_is_never_changed(value: object) -> None:
    before = deepcopy(value)
    masked_value(value, NAMES, SECRETS)
    assert value == before


HOSTILE: list[Callable[[int], str]] = [
    lambda size: "1" * size,
    lambda size: "1 " * (size // 2),
    lambda size: "06 " * (size // 3),
    lambda size: "4111 " * (size // 5),
    lambda size: "+4" * (size // 2),
    lambda size: "00" * (size // 2),
    lambda size: "a" * size + "@",
    lambda size: "a@" * (size // 2),
    lambda size: "a@" + "1." * (size // 2),
    lambda size: "a@" + "a.-" * (size // 3),
    lambda size: "." * size + "@" + "." * size,
    lambda size: "(415) " * (size // 6),
    lambda size: "DE89 " * (size // 5),
    lambda size: "eyJaaaaaaaa." * (size // 12),
    lambda size: "sk-" * (size // 3),
    lambda size: "://a@" * (size // 5),
    lambda size: "://" + "a@" * (size // 2),
    lambda size: "key=" * (size // 4),
    lambda size: "bearer " * (size // 7),
    lambda size: "12345:" + "a" * size + "12345:" * (size // 6),
    lambda size: "José-" * (size // 5),
    lambda size: "al " * (size // 3),
    lambda size: "tel: 0 " * (size // 7),
    lambda size: '{"a": ' * (size // 6),
    lambda size: "[name] " * (size // 7),
    lambda size: "\\n1" * (size // 3),
]


def seconds(text: str) -> float:
    started = time.process_time()
    mask(text, NAMES, SECRETS)
    return time.process_time() - started


@pytest.mark.timing
@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: repr(hostile(12)))
def test_hostile_text_takes_linear_time(hostile: Callable[[int], str]) -> None:
    """16 times the text may take 16 times as long, twice over; in square time it takes 256."""
    small, large = hostile(1_000_000 // 16), hostile(1_000_000)
    seconds(small[:100])
    fast = max(min(seconds(small) for _ in range(3)), 0.001)
    assert seconds(large) < 16 * fast * 2.5
