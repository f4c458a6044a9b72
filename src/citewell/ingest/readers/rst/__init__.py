"""reStructuredText (Sphinx) as a reader of the built page would see it, line 40 on line 40.

A directive either takes its lines (code, tables, comments) or is taken off them, so that what it holds
is read as if it stood alone: there is no recursion, and nesting costs nothing. Other files (`include`,
`literalinclude`) are not read.
"""

import re
from collections.abc import Mapping

from citewell.ingest.readers.rst.inline import shown
from citewell.ingest.readers.rst.output import RstOutput, indent_of
from citewell.ingest.readers.rst.syntax import (
    ADORNMENT,
    DIRECTIVE,
    NOTE,
    OPTION,
    SUBSTITUTION,
    TARGET,
    announcing,
    heading_at,
    id_of,
    is_markup,
    language_of,
    plain_title,
    targets_of,
    treatment_of,
    version_words,
)
from citewell.ingest.readers.rst.tables import (
    LISTED_ROW,
    csv_table,
    grid_end,
    grid_table,
    listed_table,
    simple_end,
    simple_table,
)
from citewell.models import ParsedDocument

_BULLET = re.compile(r"(?P<mark>[*+•‣⁃-])(?: +|$)")
_NUMBER = re.compile(r"(?P<mark>\(?(?:#|\d{1,9}|[A-Za-z]|[ivxlc]{2,6}|[IVXLC]{2,6})[.)])(?: +|$)")
_FIELD = re.compile(r":(?P<name>[^:\s`](?:[^:`]|:(?! ))*):(?: +|$)(?P<value>.*)$")


def read_rst(source: str, *, fallback_title: str) -> ParsedDocument:
    """The manuscript in a source; its title is the first heading's or the fallback."""
    lines = source.expandtabs(8).split("\n")
    sheet = RstOutput(lines, targets_of(lines))
    _Reading(sheet).read()
    title = next((one.title for one in sheet.found if one.kind == "heading"), "")
    return ParsedDocument(title=title or fallback_title, text=sheet.text(), blocks=sheet.blocks())


class _Reading:
    """One walk over the lines. Each reader takes what begins at a line and gives the line after it, or None
    where it is not the one to take it."""

    def __init__(self, sheet: RstOutput) -> None:
        self._sheet = sheet
        self._lines = sheet.lines
        self._labels: list[str] = []
        self._labelled = 0
        self._styles: list[tuple[str, bool]] = []
        self._anchors: set[str] = set()
        self._counter = 0

    def read(self) -> None:
        readers = (
            *(self._markup, self._heading, self._drawn_table, self._session, self._rule),
            *(self._item, self._field, self._line_block),
        )
        line = 0
        while line < len(self._lines):
            if self._sheet.is_blank(line):
                line += 1
                continue
            indent = indent_of(self._lines[line])
            self._sheet.settle(indent)
            ends = (reader(line, indent) for reader in readers)
            line = next((end for end in ends if end is not None), None) or self._paragraph(line, indent)

    def _markup(self, line: int, indent: int) -> int | None:
        """Explicit markup: targets, footnotes, directives. Everything else after two dots is a comment."""
        bare = self._lines[line].strip()
        if bare.startswith("__ "):
            return line + 1
        if not is_markup(bare):
            return None
        if target := TARGET.match(bare):
            self._label(target["name"].strip("`"))
        elif note := NOTE.match(bare):
            return self._container(line, indent, f"{note['label']} {note['words']}")
        elif not SUBSTITUTION.match(bare) and (directive := DIRECTIVE.match(bare)):
            return self._directive(line, indent, directive)
        elif bare == ".." and self._sheet.is_blank(line + 1):
            return line + 1  # an empty comment only ends what stands before it
        return self._sheet.block_end(line, indent)

    def _label(self, name: str) -> None:
        """Remember a label for the heading that follows, if nothing stands between them."""
        if self._labelled != len(self._sheet.found):
            self._labels.clear()
        self._labels.append(name)
        self._labelled = len(self._sheet.found)

    def _directive(self, line: int, indent: int, directive: re.Match[str]) -> int:  # noqa: PLR0911 (one for each treatment)
        name = directive["name"].rpartition(":")[2].lower()
        argument = (directive["argument"] or "").strip()
        options = self._take_options(line, indent, kept="alt" if name == "image" else "")
        match treatment_of(name, options):
            case "gone":
                return self._sheet.block_end(line, indent)
            case "code":
                return self._code(line, indent, language_of(name, argument), options.get("caption", ""))
            case "math":
                end = self._sheet.block_end(line, indent)
                self._sheet.put_math(line, argument, end)
                return end
            case "listed" | "csv" as kind:
                return self._written_table(line, indent, argument, options, is_csv=kind == "csv")
            case "names":
                self._list_names(line, indent)
                return self._container(line, indent, "")
            case "bare":
                return self._container(line, indent, "")
            case "title":
                return self._titled(line, indent, announcing(argument))
            case "object":
                return self._titled(line, indent, f"``{options.get('prog', argument)}``")
            case "version":
                has_body = self._sheet.inner_indent(line, indent, default=0) > 0
                return self._container(line, indent, version_words(name, argument, has_body=has_body))
            case "text":
                return self._container(line, indent, argument)

    def _take_options(self, line: int, indent: int, *, kept: str) -> dict[str, str]:
        """The options below a directive. They are blanked, except the one to keep, whose value becomes text."""
        options: dict[str, str] = {}
        name = ""
        depth = 0
        for place in range(line + 1, len(self._lines)):
            text = self._lines[place]
            if self._sheet.is_blank(place) or indent_of(text) <= indent:
                break
            if option := OPTION.match(text.strip()):
                name, value, depth = option["name"], (option["value"] or "").strip(), indent_of(text)
                options[name] = value
            elif name:
                value = text.strip()
                options[name] += " " + value
            else:
                continue  # the argument goes on
            self._lines[place] = " " * depth + value if name == kept else ""
        return options

    def _container(self, line: int, indent: int, words: str) -> int:
        """Take the markup off its line: what it holds is read like any text."""
        inner = self._sheet.inner_indent(line, indent, default=indent + 3)
        self._sheet.enter(inner, column=indent)
        if not words:
            return line + 1
        self._lines[line] = " " * inner + words
        return self._paragraph(line, inner)

    def _titled(self, line: int, indent: int, title: str) -> int:
        self._sheet.enter(self._sheet.inner_indent(line, indent, default=indent + 3), column=indent)
        self._sheet.put_text(line, [title])
        return line + 1

    def _code(self, line: int, indent: int, language: str, caption: str) -> int:
        end = self._sheet.block_end(line, indent)
        start = self._sheet.first_written(line + 1, end)
        if caption and start > line + 1:
            self._sheet.put_text(line, [announcing(caption)])
            line += 1
        if start < end:
            self._sheet.put_code(start, end, owned=line, language=language)
        return end

    def _list_names(self, line: int, indent: int) -> None:
        """The names in an `autosummary` become a list of code."""
        for place in range(line + 1, self._sheet.block_end(line, indent)):
            text = self._lines[place]
            if name := text.strip().lstrip("~"):
                self._lines[place] = " " * indent_of(text) + f"- ``{name.split()[0]}``"

    def _written_table(self, line: int, indent: int, title: str, options: Mapping[str, str], *, is_csv: bool) -> int:
        """A table written as a list or as comma-separated values; its title stands before it."""
        end = self._sheet.block_end(line, indent)
        start = self._sheet.first_written(line + 1, end)
        headed = options.get("header-rows", "0") != "0"
        if is_csv:
            delimiter = {"tab": "\t", "space": " "}.get(options.get("delim", ","), options.get("delim", ",")[:1])
            body = [text.strip() for text in self._lines[start:end]]
            table = csv_table(body, header=options.get("header", ""), headed=headed, delimiter=delimiter or ",")
        else:
            table = listed_table(self._lines[start:end], headed=headed)
        if table is None:
            return self._container(line, indent, title)
        if table.is_list:
            self._rewrite_rows(start, end)
            return self._container(line, indent, title)
        if not self._sheet.put_table(table, start, end, owned=line, title=announcing(title)):
            return self._container(line, indent, title)
        return end

    def _rewrite_rows(self, start: int, end: int) -> None:
        """Rows of one cell each are a list: `* - cell` becomes `  - cell`."""
        for place in range(start, end):
            if row := LISTED_ROW.match(self._lines[place].lstrip()):
                column = indent_of(self._lines[place]) + len(row["lead"])
                self._lines[place] = " " * column + self._lines[place][column:]

    def _heading(self, line: int, indent: int) -> int | None:
        heading = heading_at(self._lines, line) if indent == 0 else None
        if heading is None:
            return None
        if heading.style not in self._styles:
            self._styles.append(heading.style)
        words = shown(heading.title, self._sheet.targets).strip()
        title = plain_title(words)
        labels = self._labels if self._labelled == len(self._sheet.found) else []
        self._sheet.put_heading(
            heading.line,
            words,
            level=min(self._styles.index(heading.style) + 1, 6),
            title=title,
            anchor=self._anchor(labels[-1] if labels else title),
        )
        self._labels = []
        return heading.end

    def _anchor(self, name: str) -> str:
        """The id Sphinx gives; "" for a second heading of a name, whose id depends on the whole build."""
        anchor = id_of(name)
        if anchor in self._anchors:
            return ""
        self._anchors.add(anchor)
        return anchor

    def _drawn_table(self, line: int, indent: int) -> int | None:
        end = grid_end(self._lines, line)
        table = grid_table(self._lines[line:end]) if end else None
        if end is None and (end := simple_end(self._lines, line)):
            inside = all(self._sheet.is_blank(at) or indent_of(self._lines[at]) >= indent for at in range(line, end))
            table = simple_table(self._lines[line:end]) if inside else None
        if end is None or table is None or not self._sheet.put_table(table, line + 1, end, owned=line):
            return None
        return end

    def _session(self, line: int, indent: int) -> int | None:
        """A doctest block in the middle of text: code up to the next blank line."""
        if not self._lines[line].lstrip().startswith(">>> "):
            return None
        end = line
        while not self._sheet.is_blank(end) and indent_of(self._lines[end]) >= indent:
            end += 1
        taken = self._sheet.found[-1].end if self._sheet.found else 0
        owned = max(taken, line - 1) if line and self._sheet.is_blank(line - 1) else line
        self._sheet.put_code(line, end, owned=owned, language="python")
        return end

    def _rule(self, line: int, _: int) -> int | None:
        bare = self._lines[line].strip()
        return line + 1 if len(bare) > 2 and ADORNMENT.fullmatch(bare) else None

    def _item(self, line: int, indent: int) -> int | None:
        bare = self._lines[line].strip()
        if found := _BULLET.match(bare):
            mark, style = "- ", found["mark"]
        elif (found := _NUMBER.match(bare)) and self._is_numbered(line, indent):
            mark, style = self._numbered(found["mark"])
        else:
            return None
        words = bare[found.end() :]
        default = indent + (found.end() if words else 2)
        inner = default if words else self._sheet.inner_indent(line, indent, default=default)
        return self._enter_item(line, indent, inner, words, mark=mark, style=style)

    def _enter_item(self, line: int, indent: int, inner: int, words: str, *, mark: str, style: str) -> int:
        self._sheet.enter_item(inner, column=indent, mark=mark, style=style)
        self._lines[line] = " " * inner + words
        if not words:
            return line + 1
        end = self._markup(line, inner)
        return end if end is not None else self._paragraph(line, inner, mark=mark)

    def _is_numbered(self, line: int, indent: int) -> bool:
        """Whether a number begins an item: a paragraph may begin with "A. Smith" and go on below it."""
        if self._sheet.is_blank(line + 1) or indent_of(self._lines[line + 1]) != indent:
            return True
        following = self._lines[line + 1].strip()
        return bool(_NUMBER.match(following)) or is_markup(following)

    def _numbered(self, mark: str) -> tuple[str, str]:
        """The mark to show and the style of its list: "#." counts, "(3)" is shown as "3)"."""
        style = mark.strip("0123456789")
        if "#" in mark:
            going_on = self._sheet.left is not None and self._sheet.left.style == style
            self._counter = self._counter + 1 if going_on else 1
            mark = mark.replace("#", str(self._counter))
        return mark.lstrip("(") + " ", style if style.strip("().") in ("", "#") else "letter"

    def _field(self, line: int, indent: int) -> int | None:
        """`:name: value`. At the start of a file it is metadata and gone, elsewhere an item of a list."""
        field = _FIELD.match(self._lines[line].strip())
        if field is None:
            return None
        if not self._sheet.found:
            return self._sheet.block_end(line, indent)
        inner = self._sheet.inner_indent(line, indent, default=indent + 2)
        words = f"{field['name']}: {field['value']}".strip()
        return self._enter_item(line, indent, inner, words, mark="- ", style=":")

    def _line_block(self, line: int, _: int) -> int | None:
        """Lines after bars, as in an address or a poem."""
        end = line
        while not self._sheet.is_blank(end) and f"{self._lines[end].strip()} ".startswith("| "):
            end += 1
        if end == line:
            return None
        self._sheet.put_text(line, [text.strip()[1:].strip() for text in self._lines[line:end]])
        return end

    def _paragraph(self, line: int, indent: int, *, mark: str = "") -> int:
        """Lines of one indentation, and the literal block they announce with two colons."""
        end = line + 1
        while not self._sheet.is_blank(end) and indent_of(self._lines[end]) == indent:
            if is_markup(self._lines[end].strip()):
                break
            end += 1
        words = [text.strip() for text in self._lines[line:end]]
        literal = words[-1].endswith("::")
        if literal:
            words[-1] = words[-1][:-2].rstrip() if words[-1][:-2].endswith((" ", ":")) else words[-1][:-1]
            words[-1] = words[-1].strip() if words[-1] != ":" else ""
        elif end == line + 1 and not mark and self._is_term(line, indent):
            words[0] += ":"
        self._sheet.put_text(line, words, mark=mark)
        return self._literal(line, end, indent) if literal else end

    def _is_term(self, line: int, indent: int) -> bool:
        """Whether a definition stands right below this line, so that it needs a colon to be read as one."""
        deeper = not self._sheet.is_blank(line + 1) and indent_of(self._lines[line + 1]) > indent
        return deeper and self._sheet.group is None and bool(re.search(r"[\w`*)]$", self._lines[line].rstrip()))

    def _literal(self, line: int, after: int, indent: int) -> int:
        end = self._sheet.block_end(after - 1, indent)
        start = self._sheet.first_written(after, end)
        if start >= end:
            return after
        alone = self._lines[after - 1].strip() == "::"
        self._sheet.put_code(start, end, owned=after - 1 if alone and after == line + 1 else after)
        return end
