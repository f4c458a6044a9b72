"""Read HTML pages: the content, without navigation and the rest of the site around it."""

import codecs
import re

from citewell.errors import UnreadableFile
from citewell.ingest.readers.document_builder import Container, DocumentBuilder
from citewell.ingest.readers.html.blocks import BlockWriter
from citewell.ingest.readers.html.content import find_content
from citewell.ingest.readers.html.inline import bare_text
from citewell.ingest.readers.xml_tree import Element, parse_html
from citewell.models import ParsedDocument

_SEPARATOR = re.compile(r"\s+(?:[|·•»—–-]|::)\s+")
_DECLARED_CHARSET = re.compile(
    rb"<meta\b[^>]{0,500}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})|<\?xml\b[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})",
    re.IGNORECASE,
)
_CHARSET_SEARCH_BYTES = 4_096  # the standard asks for the first 1,024

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
# The codec that browsers use for a charset name. No other names are used: some Python codecs unzip or evaluate.
_CHARSETS = {
    **dict.fromkeys(("iso-8859-1", "latin1", "ascii", "us-ascii", "windows-1252", "cp1252"), "windows-1252"),
    **{f"windows-125{n}": f"cp125{n}" for n in (0, 1, 3, 4, 5, 6, 7, 8)},
    **{f"iso-8859-{n}": f"iso-8859-{n}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **dict.fromkeys(("gb2312", "gbk", "gb18030", "x-gbk"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis", "windows-31j"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987", "windows-949"), "cp949"),
    "iso-8859-9": "cp1254", "iso-8859-11": "cp874", "windows-874": "cp874", "tis-620": "cp874",
    "big5": "big5hkscs", "euc-jp": "euc_jp", "iso-2022-jp": "iso2022_jp",
    "koi8-r": "koi8-r", "koi8-u": "koi8-u", "macintosh": "mac-roman", "utf-8": "utf-8", "utf8": "utf-8",
}  # fmt: skip


def read_html(content: bytes, *, fallback_title: str) -> ParsedDocument:
    """Parse a page. The title is `<title>` without the site's name, the first heading or the fallback."""
    page = parse_html(decode(content))
    page_title = _page_title(page)
    builder = DocumentBuilder()
    BlockWriter(builder).write(find_content(page), Container())
    headings = [block for block in builder.build("").blocks if block.kind == "heading"]
    first = next((block.title for block in headings if block.level == 1), headings[0].title if headings else "")
    return builder.build(_without_site_name(page_title, first or _first_heading(page)) or fallback_title)


def decode(content: bytes) -> str:
    """The page's characters, in the encoding it declares, else UTF-8, else Windows-1252."""
    for bom, encoding in _BOMS:
        if content.startswith(bom):
            return content[len(bom) :].decode(encoding, "replace")
    if b"\x00" in content[:_CHARSET_SEARCH_BYTES]:
        raise UnreadableFile("it is not text, or UTF-16 without a byte order mark; save it as UTF-8")
    if charset := _declared_charset(content[:_CHARSET_SEARCH_BYTES]):
        return content.decode(charset, "replace")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("windows-1252", "replace")


def _declared_charset(head: bytes) -> str:
    names = (match[1] or match[2] for match in _DECLARED_CHARSET.finditer(head))
    return next(filter(None, (_CHARSETS.get(name.decode("ascii", "replace").lower(), "") for name in names)), "")


def _page_title(page: Element) -> str:
    head = page.find("head")
    title = head.find("title") if head else None
    return bare_text(title) if title else ""


def _first_heading(page: Element) -> str:
    heading = page.find("h1")
    return bare_text(heading) if heading else ""


def _without_site_name(page_title: str, heading: str) -> str:
    """The part of the page's title that contains its first heading: "Setup | Acme Docs" with "Setup" is "Setup"."""
    position = page_title.find(heading) if heading else -1
    if position == -1:
        return page_title or heading
    start = max((match.end() for match in _SEPARATOR.finditer(page_title) if match.end() <= position), default=0)
    after = position + len(heading)
    end = min((match.start() for match in _SEPARATOR.finditer(page_title, after)), default=len(page_title))
    return page_title[start:end]
