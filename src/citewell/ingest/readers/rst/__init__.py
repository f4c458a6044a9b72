"""Read reStructuredText (Sphinx) as the built page shows it; line numbers stay the same.

A directive either consumes its lines (code, tables, comments), or its markup is removed and its content is parsed
like any other text: there is no recursion, and nesting costs nothing. Other files (`include`, `literalinclude`)
are not read.
"""

import re
from collections.abc import Mapping

from citewell.ingest.readers.rst.inline import render_inline, render_role
from citewell.ingest.readers.rst.output import RstOutput, indent_of
from citewell.ingest.readers.rst.syntax import (
    ADORNMENT,
    DIRECTIVE,
    NOTE,
    OPTION,
    SUBSTITUTION,
    TARGET,
    heading_at,
    is_markup,
    language_of,
    plain_title,
    sphinx_id,
    targets_of,
    treatment_of,
    version_text,
    with_colon,
)
from citewell.ingest.readers.rst.tables import (
    LIST_TABLE_ROW,
    csv_table,
    grid_end,
    grid_table,
    list_table,
    simple_end,
    simple_table,
)
from citewell.models import ParsedDocument

__all__ = ["read_rst", "render_role"]

_BULLET = re.compile(r"(?P<marker>[*+•‣⁃-])(?: +|$)")
_NUMBER = re.compile(r"(?P<marker>\(?(?:#|\d{1,9}|[A-Za-z]|[ivxlc]{2,6}|[IVXLC]{2,6})[.)])(?: +|$)")
_FIELD = re.compile(r":(?P<name>[^:\s`](?:[^:`]|:(?! ))*):(?: +|$)(?P<value>.*)$")


def read_rst(source: str, *, fallback_title: str) -> ParsedDocument:
    """Parse a source. The title is the first heading or the fallback."""
    lines = source.expandtabs(8).split("\n")
    output = RstOutput(lines, targets_of(lines))
    _BlockParser(output).parse()
    title = next((block.title for block in output.blocks if block.kind == "heading"), "")
    return output.build(title or fallback_title)


class _BlockParser:
    """Parses the lines from top to bottom. Each method in `parse` tries to parse the block that begins at a line.

    It returns the line after the block, or None if the line begins no block of its kind.
    """

    def __init__(self, output: RstOutput) -> None:
        self._output = output
        self._lines = output.lines
        self._labels: list[str] = []
        self._blocks_before_labels = 0
        self._styles: list[tuple[str, bool]] = []
        self._anchors: set[str] = set()
        self._counter = 0

    def parse(self) -> None:
        parsers = (
            *(
                self._parse_explicit_markup,
                self._parse_heading,
                self._parse_drawn_table,
                self._parse_doctest,
                self._parse_transition,
            ),
            *(self._parse_list_item, self._parse_field, self._parse_line_block),
        )
        line = 0
        while line < len(self._lines):
            if self._output.is_blank(line):
                line += 1
                continue
            indent = indent_of(self._lines[line])
            self._output.move_to_indent(indent)
            ends = (parser(line, indent) for parser in parsers)
            line = next((end for end in ends if end is not None), None) or self._parse_paragraph(line, indent)

    def _parse_explicit_markup(self, line: int, indent: int) -> int | None:
        """Targets, footnotes and directives. Everything else after two dots is a comment."""
        stripped = self._lines[line].strip()
        if stripped.startswith("__ "):
            return line + 1
        if not is_markup(stripped):
            return None
        if target := TARGET.match(stripped):
            self._remember_label(target["name"].strip("`"))
        elif note := NOTE.match(stripped):
            return self._parse_content(line, indent, f"{note['label']} {note['words']}")
        elif not SUBSTITUTION.match(stripped) and (directive := DIRECTIVE.match(stripped)):
            return self._parse_directive(line, indent, directive)
        elif stripped == ".." and self._output.is_blank(line + 1):
            return line + 1  # an empty comment only ends the block before it
        return self._output.block_end(line, indent)

    def _remember_label(self, name: str) -> None:
        """Remember a label for the heading that follows, if no block comes between them."""
        if self._blocks_before_labels != len(self._output.blocks):
            self._labels.clear()
        self._labels.append(name)
        self._blocks_before_labels = len(self._output.blocks)

    def _parse_directive(self, line: int, indent: int, directive: re.Match[str]) -> int:  # noqa: PLR0911 (one for each treatment)
        name = directive["name"].rpartition(":")[2].lower()
        argument = (directive["argument"] or "").strip()
        options = self._read_options(line, indent, keep="alt" if name == "image" else "")
        match treatment_of(name, options):
            case "remove":
                return self._output.block_end(line, indent)
            case "code":
                return self._parse_code_block(line, indent, language_of(name, argument), options.get("caption", ""))
            case "math":
                end = self._output.block_end(line, indent)
                self._output.add_formula(line, argument, end)
                return end
            case "list-table" | "csv" as kind:
                return self._parse_table_directive(line, indent, argument, options, is_csv=kind == "csv")
            case "names":
                self._rewrite_names(line, indent)
                return self._parse_content(line, indent, "")
            case "body":
                return self._parse_content(line, indent, "")
            case "title":
                return self._add_title(line, indent, with_colon(argument))
            case "object":
                return self._add_title(line, indent, f"``{options.get('prog', argument)}``")
            case "version":
                has_body = self._output.inner_indent(line, indent, default=0) > 0
                return self._parse_content(line, indent, version_text(name, argument, has_body=has_body))
            case "text":
                return self._parse_content(line, indent, argument)

    def _read_options(self, line: int, indent: int, *, keep: str) -> dict[str, str]:
        """Read the options below a directive and blank their lines. The value of the option to keep becomes text."""
        options: dict[str, str] = {}
        name = ""
        depth = 0
        for number in range(line + 1, len(self._lines)):
            text = self._lines[number]
            if self._output.is_blank(number) or indent_of(text) <= indent:
                break
            if option := OPTION.match(text.strip()):
                name, value, depth = option["name"], (option["value"] or "").strip(), indent_of(text)
                options[name] = value
            elif name:
                value = text.strip()
                options[name] += " " + value
            else:
                continue  # a further line of the argument
            self._lines[number] = " " * depth + value if name == keep else ""
        return options

    def _parse_content(self, line: int, indent: int, words: str) -> int:
        """Remove the markup from its line; the content is parsed like any other text."""
        inner = self._output.inner_indent(line, indent, default=indent + 3)
        self._output.enter(inner, column=indent)
        if not words:
            return line + 1
        self._lines[line] = " " * inner + words
        return self._parse_paragraph(line, inner)

    def _add_title(self, line: int, indent: int, title: str) -> int:
        self._output.enter(self._output.inner_indent(line, indent, default=indent + 3), column=indent)
        self._output.add_text(line, [title])
        return line + 1

    def _parse_code_block(self, line: int, indent: int, language: str, caption: str) -> int:
        end = self._output.block_end(line, indent)
        start = self._output.first_nonblank(line + 1, end)
        if caption and start > line + 1:
            self._output.add_text(line, [with_colon(caption)])
            line += 1
        if start < end:
            self._output.add_code(start, end, available_from=line, language=language)
        return end

    def _rewrite_names(self, line: int, indent: int) -> None:
        """Turn the names in an `autosummary` into a list of inline code."""
        for number in range(line + 1, self._output.block_end(line, indent)):
            text = self._lines[number]
            if name := text.strip().lstrip("~"):
                self._lines[number] = " " * indent_of(text) + f"- ``{name.split()[0]}``"

    def _parse_table_directive(
        self, line: int, indent: int, title: str, options: Mapping[str, str], *, is_csv: bool
    ) -> int:
        """A `list-table` or `csv-table`, after its title."""
        end = self._output.block_end(line, indent)
        start = self._output.first_nonblank(line + 1, end)
        has_header = options.get("header-rows", "0") != "0"
        if is_csv:
            delimiter = {"tab": "\t", "space": " "}.get(options.get("delim", ","), options.get("delim", ",")[:1])
            body = [text.strip() for text in self._lines[start:end]]
            table = csv_table(body, header=options.get("header", ""), has_header=has_header, delimiter=delimiter or ",")
        else:
            table = list_table(self._lines[start:end], has_header=has_header)
        if table is None:
            return self._parse_content(line, indent, title)
        if table.is_list:
            self._rewrite_rows(start, end)
            return self._parse_content(line, indent, title)
        if not self._output.add_table(table, start, end, available_from=line, title=with_colon(title)):
            return self._parse_content(line, indent, title)
        return end

    def _rewrite_rows(self, start: int, end: int) -> None:
        """Turn rows with one cell each into a list: `* - cell` becomes `  - cell`."""
        for number in range(start, end):
            if row := LIST_TABLE_ROW.match(self._lines[number].lstrip()):
                column = indent_of(self._lines[number]) + len(row["lead"])
                self._lines[number] = " " * column + self._lines[number][column:]

    def _parse_heading(self, line: int, indent: int) -> int | None:
        heading = heading_at(self._lines, line) if indent == 0 else None
        if heading is None:
            return None
        if heading.style not in self._styles:
            self._styles.append(heading.style)
        words = render_inline(heading.title, self._output.targets).strip()
        title = plain_title(words)
        labels = self._labels if self._blocks_before_labels == len(self._output.blocks) else []
        self._output.add_heading(
            heading.line,
            words,
            level=min(self._styles.index(heading.style) + 1, 6),
            title=title,
            anchor=self._make_anchor(labels[-1] if labels else title),
        )
        self._labels = []
        return heading.end

    def _make_anchor(self, name: str) -> str:
        """The id that Sphinx gives; "" for a repeated name, whose id depends on the whole build."""
        anchor = sphinx_id(name)
        if anchor in self._anchors:
            return ""
        self._anchors.add(anchor)
        return anchor

    def _parse_drawn_table(self, line: int, indent: int) -> int | None:
        end = grid_end(self._lines, line)
        table = grid_table(self._lines[line:end]) if end else None
        if end is None and (end := simple_end(self._lines, line)):
            inside = all(
                self._output.is_blank(row) or indent_of(self._lines[row]) >= indent for row in range(line, end)
            )
            table = simple_table(self._lines[line:end]) if inside else None
        if end is None or table is None or not self._output.add_table(table, line + 1, end, available_from=line):
            return None
        return end

    def _parse_doctest(self, line: int, indent: int) -> int | None:
        """A doctest block: code up to the next blank line."""
        if not self._lines[line].lstrip().startswith(">>> "):
            return None
        end = line
        while not self._output.is_blank(end) and indent_of(self._lines[end]) >= indent:
            end += 1
        last_end = self._output.blocks[-1].end if self._output.blocks else 0
        available_from = max(last_end, line - 1) if line and self._output.is_blank(line - 1) else line
        self._output.add_code(line, end, available_from=available_from, language="python")
        return end

    def _parse_transition(self, line: int, _: int) -> int | None:
        stripped = self._lines[line].strip()
        return line + 1 if len(stripped) > 2 and ADORNMENT.fullmatch(stripped) else None

    def _parse_list_item(self, line: int, indent: int) -> int | None:
        stripped = self._lines[line].strip()
        if match := _BULLET.match(stripped):
            marker, style = "- ", match["marker"]
        elif (match := _NUMBER.match(stripped)) and self._is_numbered_item(line, indent):
            marker, style = self._number_marker(match["marker"])
        else:
            return None
        words = stripped[match.end() :]
        default = indent + (match.end() if words else 2)
        inner = default if words else self._output.inner_indent(line, indent, default=default)
        return self._enter_item(line, indent, inner, words, marker=marker, style=style)

    def _enter_item(self, line: int, indent: int, inner: int, words: str, *, marker: str, style: str) -> int:
        self._output.enter_item(inner, column=indent, marker=marker, style=style)
        self._lines[line] = " " * inner + words
        if not words:
            return line + 1
        end = self._parse_explicit_markup(line, inner)
        return end if end is not None else self._parse_paragraph(line, inner, marker=marker)

    def _is_numbered_item(self, line: int, indent: int) -> bool:
        """Whether a number begins a list item: a paragraph may begin with "A. Smith" and continue on the next line."""
        if self._output.is_blank(line + 1) or indent_of(self._lines[line + 1]) != indent:
            return True
        following = self._lines[line + 1].strip()
        return bool(_NUMBER.match(following)) or is_markup(following)

    def _number_marker(self, marker: str) -> tuple[str, str]:
        """The marker to show and the style of its list: "#." counts, "(3)" is shown as "3)"."""
        style = marker.strip("0123456789")
        if "#" in marker:
            continues = self._output.last_item is not None and self._output.last_item.style == style
            self._counter = self._counter + 1 if continues else 1
            marker = marker.replace("#", str(self._counter))
        return marker.lstrip("(") + " ", style if style.strip("().") in ("", "#") else "letter"

    def _parse_field(self, line: int, indent: int) -> int | None:
        """`:name: value`. At the start of a file it is metadata and removed, elsewhere a list item."""
        field = _FIELD.match(self._lines[line].strip())
        if field is None:
            return None
        if not self._output.blocks:
            return self._output.block_end(line, indent)
        inner = self._output.inner_indent(line, indent, default=indent + 2)
        words = f"{field['name']}: {field['value']}".strip()
        return self._enter_item(line, indent, inner, words, marker="- ", style=":")

    def _parse_line_block(self, line: int, _: int) -> int | None:
        """Lines that begin with a bar, as in an address or a poem."""
        end = line
        while not self._output.is_blank(end) and f"{self._lines[end].strip()} ".startswith("| "):
            end += 1
        if end == line:
            return None
        self._output.add_text(line, [text.strip()[1:].strip() for text in self._lines[line:end]])
        return end

    def _parse_paragraph(self, line: int, indent: int, *, marker: str = "") -> int:
        """Lines with the same indent, and the literal block after a final `::`."""
        end = line + 1
        while not self._output.is_blank(end) and indent_of(self._lines[end]) == indent:
            if is_markup(self._lines[end].strip()):
                break
            end += 1
        words = [text.strip() for text in self._lines[line:end]]
        literal = words[-1].endswith("::")
        if literal:
            words[-1] = words[-1][:-2].rstrip() if words[-1][:-2].endswith((" ", ":")) else words[-1][:-1]
            words[-1] = words[-1].strip() if words[-1] != ":" else ""
        elif end == line + 1 and not marker and self._is_term(line, indent):
            words[0] += ":"
        self._output.add_text(line, words, marker=marker)
        return self._parse_literal_block(line, end, indent) if literal else end

    def _is_term(self, line: int, indent: int) -> bool:
        """Whether the next line is a definition of this one, so that this one needs a colon."""
        deeper = not self._output.is_blank(line + 1) and indent_of(self._lines[line + 1]) > indent
        return deeper and self._output.group is None and bool(re.search(r"[\w`*)]$", self._lines[line].rstrip()))

    def _parse_literal_block(self, line: int, after: int, indent: int) -> int:
        end = self._output.block_end(after - 1, indent)
        start = self._output.first_nonblank(after, end)
        if start >= end:
            return after
        alone = self._lines[after - 1].strip() == "::"
        self._output.add_code(start, end, available_from=after - 1 if alone and after == line + 1 else after)
        return end
