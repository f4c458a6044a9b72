"""The shape of the source tree: few modules in a package, short modules, short functions, nothing written twice."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "citewell"
MODULES = sorted(SOURCE.rglob("*.py"))
PACKAGES = sorted({path.parent for path in MODULES})
SCRIPTS = sorted(path for path in (ROOT / "widget/src").rglob("*.ts") if not path.name.endswith(".d.ts"))

MAX_MODULES = 12
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60
DUPLICATE_LINES = 6

_ONLY_BRACKETS = re.compile(r'[\s()\[\]{},;:"]*')
_SCRIPT_IMPORT = re.compile(r"^(?:import|export)\b[^;]*?\bfrom\b[^;]*;", re.MULTILINE)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_a_package_has_few_modules(package: Path) -> None:
    modules = [path.name for path in package.glob("*.py") if path.name != "__init__.py"]
    assert len(modules) <= MAX_MODULES, modules


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_and_its_functions_are_short(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= MAX_MODULE_LINES
    long_functions = [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert long_functions == []


def test_nothing_is_written_twice() -> None:
    lines = {name_of(path): list(significant_lines(path)) for path in [*MODULES, *SCRIPTS]}
    repeats = [re.sub(r":\d+", "", message).split(" repeats ") for message in duplicates(lines)]
    assert repeats == []


def significant_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a file without indentation, imports, blank lines and lines of brackets only."""
    source = path.read_text(encoding="utf-8")
    imported = import_lines(source) if path.suffix == ".py" else script_import_lines(source)
    for number, line in enumerate(source.split("\n"), start=1):
        if number not in imported and not _ONLY_BRACKETS.fullmatch(line):
            yield number, line.strip()


def import_lines(source: str) -> set[int]:
    imports = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom))
    return {number for node in imports for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def script_import_lines(source: str) -> set[int]:
    spans = [
        (source.count("\n", 0, found.start()) + 1, source.count("\n", 0, found.end()) + 1)
        for found in _SCRIPT_IMPORT.finditer(source)
    ]
    return {number for first, last in spans for number in range(first, last + 1)}


def duplicates(lines_by_file: dict[str, list[tuple[int, str]]]) -> list[str]:
    """Where each run of lines that stands elsewhere, too, begins: "b.py:7 repeats a.py:3"."""
    first_places: dict[tuple[str, ...], tuple[str, int]] = {}
    repeated: dict[tuple[str, int, str, int], str] = {}
    for file, lines in lines_by_file.items():
        for place in range(len(lines) - DUPLICATE_LINES + 1):
            run = tuple(text for _, text in lines[place : place + DUPLICATE_LINES])
            other, other_place = first_places.setdefault(run, (file, place))
            if (other, other_place) != (file, place):
                message = f"{file}:{lines[place][0]} repeats {other}:{lines_by_file[other][other_place][0]}"
                repeated[file, place, other, other_place] = message
    # A longer run is found again at each of its lines; only its first line is reported.
    return [
        message
        for (file, place, other, other_place), message in repeated.items()
        if (file, place - 1, other, other_place - 1) not in repeated
    ]


def test_the_detector_finds_a_repeated_run() -> None:
    run = [f"line {number}" for number in range(DUPLICATE_LINES + 2)]
    first = list(enumerate(["before", *run, "after"], start=1))
    second = list(enumerate(["other", "lines", *run], start=1))
    assert duplicates({"a.py": first, "b.py": second}) == ["b.py:3 repeats a.py:2"]
    assert duplicates({"a.py": first, "b.py": second[: DUPLICATE_LINES + 1]}) == []
