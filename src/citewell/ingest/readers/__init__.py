"""One module or package per file format; each parses a file into a `ParsedDocument`. They know nothing of chunks."""
