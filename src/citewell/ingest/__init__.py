"""From files to a published index: walk, load, chunk, compare, embed what is new, publish."""
