"""The witness: it answers by quoting what it was sent, or says that the answer is not there. Not a language model.

It combines nothing and invents nothing: the same request gives the same bytes. It needs no key and no download, so the
sample uses it to show which parts of a conversation reach a model.
"""
