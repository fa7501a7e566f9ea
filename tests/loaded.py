"""What `sommelier` has loaded after its first answers: modules, tables, catalogues of texts."""

# ruff: noqa: F401, E402

import gc

gc.disable()  # until a process begins: what is loaded stays

import alembic.command
import anyio._backends._asyncio
import babel.numbers
import httpcore
import openai
import psycopg
import snowballstemmer

import bot.__main__
import bot.app
import bot.console
import bot.http.server
import db.documents.reading
from agent.i18n import languages, translate_into
from agent.query_reading.request import read_request
from agent.query_reading.tables import load_lexicon
from agent.safety.concerns import read_safety_state

load_lexicon()
for language in languages():
    translate_into(language, "nothing_to_forget")
for understand in (read_safety_state, read_request):
    understand("I like a dry red wine with lamb, for 20 euros.")
