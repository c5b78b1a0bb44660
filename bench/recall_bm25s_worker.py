"""Answers questions with `bm25s` over texts, one JSON line after the other; runs in an environment that has the package."""

import json
import logging
import sys

import bm25s  # type: ignore[import-not-found]  # in an environment of its own
import Stemmer  # type: ignore[import-not-found]  # likewise

logging.disable(logging.CRITICAL)
STEMMER = Stemmer.Stemmer("english")


def tokenized(texts: list[str]) -> list[list[str]]:
    """Return the words of texts as the package's own examples have it: its tokenizer, English stop words, a stemmer."""
    words: list[list[str]] = bm25s.tokenize(
        texts, stopwords="en", stemmer=STEMMER, show_progress=False, return_ids=False
    )
    return words


def main() -> None:
    """Read conversations and questions from stdin and write the numbers of the messages that are found."""
    for line in sys.stdin:
        asked = json.loads(line)
        texts = tokenized(asked["texts"])
        questions = tokenized([text for text, _ in asked["questions"]])
        indexes: dict[int, bm25s.BM25] = {}
        found: list[list[int]] = []
        for words, (_, before) in zip(questions, asked["questions"], strict=True):
            if before not in indexes:
                indexes[before] = bm25s.BM25()
                indexes[before].index(texts[: before - 1], show_progress=False)
            if not words:
                found.append([])
                continue
            most = min(asked["most"], before - 1)
            places, scores = indexes[before].retrieve([words], k=most, show_progress=False)
            found.append(
                [int(place) + 1 for place, score in zip(places[0], scores[0], strict=True) if score > 0]
            )
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


main()
