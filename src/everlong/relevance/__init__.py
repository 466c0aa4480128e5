"""Terms of texts, an index over a conversation, and the ranking of its chunks by what is needed next.

Pure, for Chinese and English alike. Never calls a model, and never decides what is sent.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.relevance.chunks import PATH_KEYS as PATH_KEYS, Chunk as Chunk, ChunkKind as ChunkKind
    from everlong.relevance.index import Index as Index, names_in as names_in
    from everlong.relevance.query import (
        argument_text as argument_text,
        query_of as query_of,
        query_of_text as query_of_text,
    )
    from everlong.relevance.ranking import ranked as ranked
    from everlong.relevance.talk import are_notes as are_notes
    from everlong.relevance.terms import (
        STOP_WORDS as STOP_WORDS,
        in_language as in_language,
        language_of as language_of,
        terms_of as terms_of,
        words_of as words_of,
    )
    from everlong.relevance.work import names_by_need as names_by_need
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "chunks": "Chunk ChunkKind PATH_KEYS",
            "index": "Index names_in",
            "query": "argument_text query_of query_of_text",
            "ranking": "ranked",
            "talk": "are_notes",
            "terms": "STOP_WORDS in_language language_of terms_of words_of",
            "work": "names_by_need",
        },
    )
