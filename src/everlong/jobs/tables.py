"""The tables of procrastinate in our schema: created from its own SQL, updated by its own migrations.

Everything is in the schema `everlong`, and its functions use no other, so writing to the tables needs no search path.
The comment on the table of jobs names the migrations that were applied.
"""

from importlib.resources import files
from typing import Any, LiteralString

from psycopg import Connection
from psycopg.sql import SQL, Literal

__all__ = ["make_tables"]

_LOCK = 0x6A6F6273  # a number that no other program uses; the process that holds it may change the tables

#: A handler's data is in a separate table, so that looking for jobs does not read it; it is deleted with its job.
_OURS: LiteralString = """
CREATE TABLE everlong.job_loads (
    job bigint PRIMARY KEY REFERENCES everlong.procrastinate_jobs ON DELETE CASCADE,
    load bytea NOT NULL,
    asked timestamptz NOT NULL DEFAULT now()
);
ALTER TABLE everlong.job_loads ALTER COLUMN load SET STORAGE EXTERNAL;  -- they come packed
CREATE INDEX jobs_by_lock ON everlong.procrastinate_jobs (lock) WHERE status IN ('todo', 'doing');
"""

_CLOSED: LiteralString = """
DO $$
DECLARE
    made regprocedure;
BEGIN
    FOR made IN SELECT oid::regprocedure FROM pg_proc
        WHERE pronamespace = 'everlong'::regnamespace AND proname LIKE 'procrastinate%'
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = everlong, pg_catalog', made);
    END LOOP;
END;
$$;
"""


def make_tables(connection: Connection[Any]) -> None:
    """Create or update the job tables, one process at a time."""
    steps = sorted(path.name for path in files("procrastinate.sql.migrations").iterdir() if path.name.endswith(".sql"))
    if _made(connection) >= steps[-1]:
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        made = _made(connection)
        if made >= steps[-1]:
            return
        connection.execute("SET LOCAL search_path = everlong, pg_catalog")
        if not made:
            connection.execute("CREATE SCHEMA IF NOT EXISTS everlong")
            connection.execute(_sql("procrastinate.sql", "schema.sql"))
            connection.execute(_OURS)
        for step in steps:
            if made and step > made:
                connection.execute(_sql("procrastinate.sql.migrations", step))
        connection.execute(_CLOSED)
        connection.execute(SQL("COMMENT ON TABLE everlong.procrastinate_jobs IS {}").format(Literal(steps[-1])))


def _made(connection: Connection[Any]) -> str:
    """Return the newest migration that was applied; "" if there are no tables."""
    row = connection.execute(
        "SELECT obj_description(c.oid, 'pg_class') FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE n.nspname = 'everlong' AND c.relname = 'procrastinate_jobs'"
    ).fetchone()
    return str(row[0] or "") if row else ""


def _sql(package: str, name: str) -> bytes:
    return files(package).joinpath(name).read_bytes()
