"""From files to a published index: walk, compare, parse, chunk, embed what is new, publish."""
