"""The HTTP server: endpoints, authentication, limits, rendering and streams. It decides nothing about answers."""
