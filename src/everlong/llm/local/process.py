"""The process that holds the model: `python -m everlong.llm.local.process FILE CONTEXT THREADS PORT`.

Reads its key as one line of standard input, prints its address as one line and serves until standard input ends, so
it never outlives its parent process.
"""

import os
import sys

__all__ = ["main"]

NOBODY = "null"  # the origin whose pages may read answers: no page has it; an empty text would mean every page
SILENCE = 60  # seconds in which a client may send or read nothing
MOST_CONNECTIONS = 32  # each connection holds a thread, even an idle one


def main(arguments: list[str]) -> None:
    """Serve until standard input ends."""
    import xllamacpp  # noqa: PLC0415 - an extra, and only this process has it

    file, context, threads, port = arguments
    settings = xllamacpp.CommonParams()
    settings.model.path = file
    settings.model_alias = {"local"}
    settings.n_ctx = int(context)
    settings.n_parallel = 1  # the context is divided among the slots
    settings.cpuparams.n_threads = int(threads)
    settings.cpuparams_batch.n_threads = int(threads)
    settings.fit_params = False
    settings.warmup = False
    settings.api_keys = [sys.stdin.buffer.readline().decode().strip()]
    settings.cors_origins = NOBODY
    settings.cors_credentials = False
    settings.port = int(port)  # on 127.0.0.1; 0 takes a free one
    settings.timeout_read = settings.timeout_write = SILENCE
    settings.n_threads_http = MOST_CONNECTIONS
    settings.verbosity = 0
    server = xllamacpp.Server(settings)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    os._exit(0)  # there is nothing to save, and the server's threads may never end by themselves


if __name__ == "__main__":
    main(sys.argv[1:])
