"""One file per format; each turns a file's text into a `Manuscript`. They know nothing of chunks."""
