"""Where a cited chunk is: in the stored document, in the file, on the page and on the live site."""

from uuid import UUID

from pydantic import BaseModel, Field


class Location(BaseModel):
    """The place of a chunk in its document."""

    start: int | None = Field(None, ge=0, description="Where the chunk begins in the document's text, in characters.")
    end: int | None = Field(None, ge=0, description="Where it ends: `document_text[start:end]` is the chunk.")
    line: int | None = Field(None, ge=1, description="The line of the file on which the quoted words begin.")
    page: int | None = Field(None, ge=1, description="The page, in documents that have pages.")


class SourceLocation(Location):
    """The same, with the ids and the address of what is cited."""

    chunk_id: str | None = Field(None, description="The chunk's id; the same id never means another text.")
    document_id: UUID | None = None
    source_url: str | None = Field(None, description="The live page at the quoted words, where it has an address.")
