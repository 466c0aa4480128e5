"""Terms of texts, an index of a conversation, and a ranking of its parts by what the next request needs.

Pure, for Chinese and English alike. It never calls a language model and never decides what is sent.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.relevance.calls import PATH_KEYS as PATH_KEYS
    from everlong.relevance.chunks import Chunk as Chunk, ChunkKind as ChunkKind, pieces_said as pieces_said
    from everlong.relevance.index import Index as Index, Likeness as Likeness, names_in as names_in
    from everlong.relevance.query import (
        argument_text as argument_text,
        query_of as query_of,
        query_of_text as query_of_text,
    )
    from everlong.relevance.ranking import ranked as ranked
    from everlong.relevance.talk.questions import is_reply as is_reply
    from everlong.relevance.talk.wishes import wishes_in as wishes_in
    from everlong.relevance.talk.worth import are_notes as are_notes
    from everlong.relevance.terms import (
        STOP_WORDS as STOP_WORDS,
        in_language as in_language,
        language_of as language_of,
        terms_of as terms_of,
        words_of as words_of,
    )
    from everlong.relevance.vectors.embedder import Embedder as Embedder, embedder_named as embedder_named
    from everlong.relevance.vectors.likeness import (
        computed_likeness as computed_likeness,
        likeness_of as likeness_of,
    )
    from everlong.relevance.work import asked_for as asked_for, names_by_need as names_by_need
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "calls": "PATH_KEYS",
            "chunks": "Chunk ChunkKind pieces_said",
            "index": "Index Likeness names_in",
            "query": "argument_text query_of query_of_text",
            "ranking": "ranked",
            "talk.questions": "is_reply",
            "talk.wishes": "wishes_in",
            "talk.worth": "are_notes",
            "terms": "STOP_WORDS in_language language_of terms_of words_of",
            "vectors.embedder": "Embedder embedder_named",
            "vectors.likeness": "computed_likeness likeness_of",
            "work": "asked_for names_by_need",
        },
    )
