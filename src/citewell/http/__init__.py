"""The HTTP doors: one file each, all rendering the one answer stream. Thin, like the command line."""
