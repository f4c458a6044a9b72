"""Writes PDF files, by hand, so that tests know every byte."""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise

Word = tuple[str, float, float, float] | tuple[str, float, float, float, str]
"""Text, x, y, font size, and the font if it is not F1."""

_FONTS = {"F1": "Helvetica", "F2": "Helvetica-Bold", "F3": "Courier"}
_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def rc4(key: bytes, content: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out = bytearray()
    i = j = 0
    for byte in content:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)


def make_pdf(
    pages: Sequence[Sequence[Word]],
    *,
    title: str = "",
    outline: Sequence[tuple[str, int]] = (),
    password: str | None = None,
    rotate: int = 0,
    drawings: Mapping[int, bytes] | None = None,
) -> bytes:
    """A PDF with words at places; `password` encrypts it (40-bit RC4, the oldest scheme that every reader knows).

    `drawings` are operators for pages, numbered from 0: see `rules` and `picture`.
    """
    objects: dict[int, bytes] = {1: b"", 2: b""}
    for number, name in enumerate(_FONTS.values(), start=3):
        objects[number] = f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>".encode()
    fonts = " ".join(f"/{font} {number} 0 R" for number, font in enumerate(_FONTS, start=3))
    file_id = b"0123456789abcdef"
    owner_key = hashlib.md5(((password or "") + "owner").encode() + _PADDING).digest()
    user = ((password or "").encode() + _PADDING)[:32]
    owner = rc4(owner_key[:5], user)
    key = hashlib.md5(user + owner + (-4 & 0xFFFFFFFF).to_bytes(4, "little") + file_id).digest()[:5]
    first_page = 10
    for index, words in enumerate(pages):
        page, stream = first_page + 2 * index, first_page + 2 * index + 1
        objects[page] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Rotate {rotate} "
            f"/Resources << /Font << {fonts} >> >> /Contents {stream} 0 R >>"
        ).encode()
        drawn = b"\n".join([(drawings or {}).get(index, b""), *(_drawn(*word) for word in words)])
        if password is not None:
            drawn = rc4(hashlib.md5(key + stream.to_bytes(3, "little") + b"\0\0").digest()[:10], drawn)
        objects[stream] = b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn)
    kids = " ".join(f"{first_page + 2 * index} 0 R" for index in range(len(pages)))
    objects[2] = f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode()
    objects[1] = (
        b"<< /Type /Catalog /Pages 2 0 R /Outlines 6 0 R >>" if outline else b"<< /Type /Catalog /Pages 2 0 R >>"
    )
    objects[7] = b"<< /Title (%s) >>" % _escaped(title)
    trailer = b"/Root 1 0 R /Info 7 0 R"
    if outline:
        start = first_page + 2 * len(pages)
        for index, (words_of, page_index) in enumerate(outline):
            following = f"/Next {start + index + 1} 0 R" if index + 1 < len(outline) else ""
            objects[start + index] = (
                f"<< /Title ({words_of}) /Parent 6 0 R /Dest [{first_page + 2 * page_index} 0 R /Fit] {following} >>"
            ).encode()
        objects[6] = f"<< /Type /Outlines /First {start} 0 R /Last {start + len(outline) - 1} 0 R >>".encode()
    if password is not None:
        objects[8] = b"<< /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >>" % (
            owner.hex().encode(),
            rc4(key, _PADDING).hex().encode(),
        )
        trailer += b" /Encrypt 8 0 R /ID [<%s> <%s>]" % (file_id.hex().encode(), file_id.hex().encode())
    return _file(objects, trailer)


def _file(objects: dict[int, bytes], trailer: bytes) -> bytes:
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets = {}
    for number, body in sorted(objects.items()):
        offsets[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    size = max(objects) + 1
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        out += b"%010d 00000 n \n" % offsets[number] if number in offsets else b"0000000000 00000 f \n"
    return bytes(out + b"trailer << /Size %d %s >>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, start))


def _drawn(text: str, x: float, y: float, size: float, font: str = "F1") -> bytes:
    return b"BT /%s %.2f Tf 1 0 0 1 %.2f %.2f Tm (%s) Tj ET" % (font.encode(), size, x, y, _escaped(text))


def _escaped(text: str) -> bytes:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)").encode("cp1252")


def rules(columns: Sequence[float], rows: Sequence[float], *, boxes: bool = False) -> bytes:
    """The lines of a table, each drawn whole; with `boxes`, a thin filled rectangle for each side of each cell."""
    if boxes:
        sides = [(x, y, u - x, 0.5) for x, u in pairwise(columns) for y in rows]
        sides += [(x, y, 0.5, v - y) for x in columns for y, v in pairwise(sorted(rows))]
        return b"".join(b"%.1f %.1f %.1f %.1f re f\n" % side for side in sides)
    lines = [(x, min(rows), x, max(rows)) for x in columns] + [(min(columns), y, max(columns), y) for y in rows]
    return b"".join(b"%.1f %.1f m %.1f %.1f l S\n" % line for line in lines)


def picture(x: float, y: float, width: float, height: float) -> bytes:
    """A grey picture at a place."""
    return b"q %.1f 0 0 %.1f %.1f %.1f cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x80 EI Q\n" % (width, height, x, y)


def body(*lines: str, top: float = 700, x: float = 72, size: float = 11, leading: float = 14) -> list[Word]:
    return [(line, x, top - leading * number, size) for number, line in enumerate(lines)]
