"""Where cited words stand, in addition to what a door's own contract says of a source."""

from pydantic import BaseModel, Field


class Receipt(BaseModel):
    """Enough to find the words again: in the stored document, in the file, on the page and on the live site."""

    start: int | None = Field(None, ge=0, description="Where the chunk begins in the document's text, in characters.")
    end: int | None = Field(None, ge=0, description="Where it ends: `document_text[start:end]` is the chunk.")
    line: int | None = Field(None, ge=1, description="The line of the file on which the quoted words begin.")
    page: int | None = Field(None, ge=1, description="The page, in documents that have pages.")
