"""From a question to a cited answer: understand, retrieve, write, cite. Knows ports, never engines."""
