"""The pages of docs/reference that are written from the program: what each module reads, and how a page is laid out."""
