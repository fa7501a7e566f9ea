"""The same answerer under plain python-telegram-bot: nothing is kept before the acknowledgement."""

import os

from telegram import Update
from telegram.ext import Application, ContextTypes, MessageHandler, filters

from agent.engine.llm import LLMService
from agent.engine.run import Run
from bot.telegram.render import split_messages
from tests.fakes import fake_sommelier


def main() -> None:
    """Poll TELEGRAM_BASE_URL and answer each text, all chats side by side."""
    model = LLMService(
        model="gpt-4o", api_key="bench", base_url=os.environ["OPENAI_BASE_URL"]
    )
    sommelier = fake_sommelier()

    async def answer(update: Update, context: ContextTypes.DEFAULT_TYPE) -> None:
        if update.message is None or not update.message.text:
            return
        reply = await sommelier.answer(update.message.text, run=Run([model]))
        for html in split_messages(reply.text):
            await update.message.reply_html(html)

    builder = Application.builder().token(os.environ["TELEGRAM_BOT_TOKEN"])
    builder = builder.base_url(
        os.environ["TELEGRAM_BASE_URL"] + "/bot"
    ).concurrent_updates(64)
    application = builder.connection_pool_size(64).job_queue(None).build()
    application.add_handler(MessageHandler(filters.TEXT, answer))
    application.run_polling(drop_pending_updates=False)


if __name__ == "__main__":
    main()
