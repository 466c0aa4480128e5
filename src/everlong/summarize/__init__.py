"""Summaries of the beginning of a conversation: facts copied by code, and text written by a model and audited.

Pure: prompts, parsing, audit, merging and rendering. It never calls a model; the engine decides when to ask which one.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.summarize.answers import foreign_account as foreign_account, parsed as parsed
    from everlong.summarize.audit.language import (
        COMMON_WORDS as COMMON_WORDS,
        UNKNOWN_LATIN as UNKNOWN_LATIN,
        spoken as spoken,
    )
    from everlong.summarize.audit.verdict import audited as audited
    from everlong.summarize.facts import facts_of as facts_of
    from everlong.summarize.parts import FREE_LIMIT as FREE_LIMIT, Style as Style
    from everlong.summarize.prompts import (
        asked_style as asked_style,
        instruction as instruction,
        system as system,
    )
    from everlong.summarize.rules import summary_by_rules as summary_by_rules
    from everlong.summarize.secrets.redaction import redacted as redacted
    from everlong.summarize.summary import (
        NO_FACTS as NO_FACTS,
        NOTICE as NOTICE,
        Facts as Facts,
        Summary as Summary,
        as_message as as_message,
        as_system_section as as_system_section,
        covered_by as covered_by,
        decode_summary as decode_summary,
        encode_summary as encode_summary,
        for_people as for_people,
        merged as merged,
        written as written,
    )
    from everlong.summarize.text import (
        clipped as clipped,
        framed as framed,
        one_line as one_line,
    )
    from everlong.summarize.titles import (
        LONGEST_TITLE as LONGEST_TITLE,
        asked_title as asked_title,
        parsed_title as parsed_title,
        title_prompt as title_prompt,
    )
    from everlong.summarize.transcripts import (
        chunks as chunks,
        read_transcript as read_transcript,
        transcript as transcript,
    )
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "answers": "foreign_account parsed",
            "audit.language": "COMMON_WORDS UNKNOWN_LATIN spoken",
            "audit.verdict": "audited",
            "facts": "facts_of",
            "parts": "FREE_LIMIT Style",
            "prompts": "asked_style instruction system",
            "rules": "summary_by_rules",
            "secrets.redaction": "redacted",
            "summary": "Facts NOTICE NO_FACTS Summary as_message as_system_section covered_by decode_summary "
            "encode_summary for_people merged written",
            "text": "clipped framed one_line",
            "titles": "LONGEST_TITLE asked_title parsed_title title_prompt",
            "transcripts": "chunks read_transcript transcript",
        },
    )
