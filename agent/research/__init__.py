"""Research in documents and on the web: four contracts on the core of attempts and feedback.

    answer.py    an answer from documents, a citation for every statement
    quotes.py    passages word for word, delivered one by one
    refine.py    the optional rewriting of a question before retrieval
    queries.py   exactly 10 search queries for a place; places.py searches with them

`evaluation.py` measures how well a model quotes. `docs/research.md` tells the whole.
"""
