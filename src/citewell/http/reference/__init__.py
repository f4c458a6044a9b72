"""The API reference: the OpenAPI document and the page at `/docs`."""

from citewell.http.reference.openapi import describe
from citewell.http.reference.routes import router

__all__ = ["describe", "router"]
