"""What is sent after Telegram has rejected the formatting of a message."""

from agent.markdown import escape, format_link
from bot.telegram.render import split_messages
from bot.telegram.sender import to_plain_html
from tests.attacks.link_payloads import random_texts
from tests.doubles.telegram_links import live_links


def test_the_text_without_formatting_is_as_protected_as_with_it() -> None:
    markdowns = [f"**{escape(text)}**" for text in random_texts(300, seed=9)]
    markdowns += [
        "> **evil.com** and @evil_bot",
        f"See {format_link('https://x.org/a')}, /help.",
    ]
    for markdown in markdowns:
        for html in split_messages(markdown):
            live = set(live_links(to_plain_html(html)))
            assert live <= {"/help"}
