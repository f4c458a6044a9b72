"""What every parsed document promises, whatever file it came from."""

from uuid import UUID

from citewell.ingest.chunk import ChunkSize, chunk
from citewell.models import ParsedDocument
from citewell.text.units import split_units

DOCUMENT = UUID("00000000-0000-5000-8000-000000000000")


def assert_sound(parsed: ParsedDocument) -> None:
    """Blocks are whole lines, in order, apart, over every line that is not blank; and it can be cut into chunks."""
    text, position = parsed.text, 0
    for block in parsed.blocks:
        assert position <= block.start < block.end <= len(text)
        assert not text[position : block.start].strip()
        assert block.start == 0 or text[block.start - 1] == "\n"
        assert text[block.end - 1] == "\n"
        assert text[block.start : block.end].strip()
        assert (block.kind == "heading") == (1 <= block.level <= 6)
        assert (block.kind == "heading") == bool(block.title)
        position = block.end
    assert not text[position:].strip()
    assert not any(control in text for control in "\r\x00\x0b\x0c\x85\u2028\u2029\u200b")
    text.encode()  # no half of a surrogate pair
    for block in parsed.blocks:
        words = text[block.start : block.end]
        if block.kind == "code":
            assert [unit.kind for unit in split_units(words)] == ["code"]
    chunk(parsed, document_id=DOCUMENT, source="file", size=ChunkSize(12, 20, 5))
