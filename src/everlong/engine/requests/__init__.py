"""The next request of a thread: what is in it, when it is compacted, and how a compaction is made.

`preparation` makes the request, `assembly` its view without a compaction, `compaction` the point that stores one, `due`
says when one comes, `situation` writes the summary that code writes itself, and `placement` puts in what the call adds.
"""
