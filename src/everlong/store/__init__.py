"""Stores of threads: memory, SQLite, Postgres and session files behind one contract, `engine.Threads`.

A store keeps what it is given and finds it again. It never calls a model and never changes a stored row. This package
also imports conversations of other programs and exports threads.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.store.bodies import decode_entry as decode_entry, encode_entry as encode_entry, kind_of as kind_of
    from everlong.store.engines import open_engine as open_engine
    from everlong.store.exports import (
        FORMATS as FORMATS,
        archive_of as archive_of,
        export_name as export_name,
        exported as exported,
    )
    from everlong.store.imports import (
        Imported as Imported,
        branch_id as branch_id,
        import_session as import_session,
    )
    from everlong.store.inputs import (
        LARGEST_CONFIG as LARGEST_CONFIG,
        LARGEST_INPUT as LARGEST_INPUT,
        read_input as read_input,
    )
    from everlong.store.jsonl.threads import JsonlThreads as JsonlThreads
    from everlong.store.memory import MemoryThreads as MemoryThreads
    from everlong.store.postgres.threads import PostgresThreads as PostgresThreads
    from everlong.store.private import (
        close_to_others as close_to_others,
        make_folder as make_folder,
        open_private as open_private,
        write_private as write_private,
    )
    from everlong.store.sessions import (
        Passed as Passed,
        Session as Session,
        sessions_in as sessions_in,
        sessions_of as sessions_of,
    )
    from everlong.store.terms import query_terms as query_terms, texts_of as texts_of
    from everlong.store.urls import (
        STORE_VARIABLE as STORE_VARIABLE,
        database_url as database_url,
        default_store as default_store,
        is_remote as is_remote,
        open_store as open_store,
        store_path as store_path,
    )
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "bodies": "decode_entry encode_entry kind_of",
            "engines": "open_engine",
            "exports": "FORMATS archive_of export_name exported",
            "imports": "Imported branch_id import_session",
            "inputs": "LARGEST_CONFIG LARGEST_INPUT read_input",
            "jsonl.threads": "JsonlThreads",
            "memory": "MemoryThreads",
            "postgres.threads": "PostgresThreads",
            "private": "close_to_others make_folder open_private write_private",
            "sessions": "Passed Session sessions_in sessions_of",
            "terms": "query_terms texts_of",
            "urls": "STORE_VARIABLE database_url default_store is_remote open_store store_path",
        },
    )
