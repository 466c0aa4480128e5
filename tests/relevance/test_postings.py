"""Where words and terms stand, against a search through all words."""

from collections import Counter

from hypothesis import given, strategies as st

from everlong.core import Message, Role, Text
from everlong.relevance import Index, terms_of
from everlong.relevance.postings import Postings

WORDS = (
    "retry",
    "retries",
    "readFile",
    "read_file",
    "file",
    "File",
    "42",
    "上",
    "上下",
    "x",
    "the",
    "session_sessions",
)

chunks_of_words = st.lists(st.lists(st.sampled_from(WORDS), max_size=12), max_size=12)
signs = st.sampled_from((0, 2, 5, 47_000))  # from none with a character to all


def _expected(chunks: list[list[str]], term: str) -> dict[int, float]:
    counts: Counter[int] = Counter()
    for number, words in enumerate(chunks):
        weights = [weight for word in words for found_by, weight in dict(terms_of(word)).items() if found_by == term]
        if weights:
            counts[number] = sum(weights)
    return dict(counts)


@given(chunks=chunks_of_words, split=st.integers(0, 12), most_signs=signs)
def test_a_term_stands_where_its_words_do_however_the_chunks_came(
    chunks: list[list[str]], split: int, most_signs: int
) -> None:
    """Asked in between or not, with characters for all words or for few: the same."""
    postings = Postings(most_signs)
    terms = list(dict.fromkeys(term for word in WORDS for term, _ in terms_of(word)))
    for part in (chunks[:split], chunks[split:]):
        for words in part:
            postings.add(words)
        asked = postings.standings(terms, 1_000)
        got = {
            term: {} if standing is None else dict(zip(standing.chunks, standing.counts, strict=True))
            for term, standing in zip(terms, asked, strict=True)
        }
        known = chunks[: postings.length]
        assert got == {term: _expected(known, term) for term in terms}


@given(chunks=chunks_of_words, word=st.sampled_from(WORDS), most_signs=signs)
def test_the_chunks_with_a_word_are_found_and_counted(chunks: list[list[str]], word: str, most_signs: int) -> None:
    postings = Postings(most_signs)
    for words in chunks:
        postings.add(words)
    assert postings.count(word) == sum(words.count(word) for words in chunks)
    assert postings.chunks_with(word) == [number for number, words in enumerate(chunks) if word in words]


@given(chunks=chunks_of_words, most_signs=signs)
def test_a_word_that_matches_is_never_passed_over(chunks: list[list[str]], most_signs: int) -> None:
    postings = Postings(most_signs)
    for words in chunks:
        postings.add(words)
    for term in ("retr", "file", "readfile", "42"):
        may_match = postings.may_match([term])
        for word in WORDS:
            if any(found_by == term for found_by, _ in terms_of(word)):
                assert may_match(word)


def test_a_term_that_stands_too_often_is_not_looked_at() -> None:
    postings = Postings()
    for _ in range(5):
        postings.add(["retry", "retry"])
    (often,) = postings.standings(["retr"], 9)
    (seldom,) = postings.standings(["retr"], 10)
    assert often is None
    assert seldom is not None
    assert list(seldom.counts) == [2.0] * 5


def test_the_reference_of_a_message_is_worked_out_once() -> None:
    index = Index()
    first, other = (Message(Role.USER, (Text(text),)) for text in ("hello", "never asked for"))
    index.add(first)
    assert index.ref(0, first) is index.ref(0, other)
