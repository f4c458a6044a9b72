"""Ask your documents and trust the answer."""

__version__ = "0.1.0"
