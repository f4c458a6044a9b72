"""`citewell ingest`: indexes files and folders, in a terminal or in CI."""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from citewell.cli.options import command, json_option, project_option
from citewell.cli.output import Progress
from citewell.errors import SettingsError
from citewell.models import IngestResult, Preview, Project, SkippedFile

if TYPE_CHECKING:
    from citewell.ingest.read_ahead import Recipe
    from citewell.ingest.walk import FileRules
    from citewell.settings import Settings

_MAX_SKIPPED_KINDS = 12  # in the line under a result; `--json` lists every file
_MAX_FOLDER_NAMES = 4


class _LocalPath(click.Path):
    """A path on this machine; for a URL, the error says how to download it first."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from citewell.cli.download_advice import how_to_download, is_url

        if is_url(str(value)) and not Path(value).exists():
            raise click.ClickException(how_to_download(str(value)))
        return super().convert(value, param, ctx)


@click.command()
@click.argument("paths", nargs=-1, type=_LocalPath(path_type=Path), metavar="[PATH…]")
@project_option
@click.option("--prune", is_flag=True, help="Remove documents of the project whose files are no longer under PATH….")
@click.option(
    "--include",
    multiple=True,
    metavar="GLOB",
    help="Index only files that match, such as 'guide/**' or '*.md'; can be repeated.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="GLOB",
    help="Skip files and folders that match, such as 'drafts/'; can be repeated.",
)
@click.option("--plan", "--dry-run", "plan_only", is_flag=True, help="Print what would change, and change nothing.")
@click.option("--watch", is_flag=True, help="Keep running, and ingest again whenever a file changes.")
@click.option("--base-url", metavar="URL", help="The URL where the documents are published, for links in citations.")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also index hidden, built, generated and git-ignored files, CSS and JavaScript.",
)
@click.option(
    "--reembed",
    is_flag=True,
    help="Rebuild the index with the configured embedding model, from the indexed documents; needs no PATH.",
)
@click.option(
    "--no-chunking",
    is_flag=True,
    help="Store documents that are smaller than the smallest chunk whole; answers cite them by their document id.",
)
@click.option(
    "--rebuild",
    is_flag=True,
    help="Begin with an empty database where the old one is missing or damaged; a damaged one is kept beside it.",
)
@click.option("--no-wait", is_flag=True, help="Exit at once if another ingest is running.")
@json_option
@command
async def ingest(
    paths: tuple[Path, ...],
    project: str,
    prune: bool,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    plan_only: bool,
    watch: bool,
    base_url: str | None,
    everything: bool,
    reembed: bool,
    rebuild: bool,
    no_chunking: bool,
    no_wait: bool,
    as_json: bool,
) -> None:
    """Index files and folders. Only new and changed files are read, and only new text is embedded.

    Reads Markdown, MDX, reStructuredText, HTML, PDF, DOCX, plain text and source code. Skips CSS, JavaScript,
    generated and hidden files, build folders, and what .gitignore and .citewellignore name. The patterns of
    --include and --exclude have the syntax of .gitignore and are relative to the folder that is indexed.

    Exit code 0: every file was indexed. 1: some could not be read; the others were indexed.
    """
    from citewell import wiring
    from citewell.ingest.walk import FileRules
    from citewell.settings import read_settings

    settings = read_settings()
    if not paths and (watch or prune or not reembed):
        raise click.UsageError("Missing argument 'PATH…'.")
    if base_url is not None and not base_url.startswith(("http://", "https://")):
        raise click.UsageError(f"--base-url {base_url}: it must begin with https:// or http://")
    try:
        rules = FileRules(include, exclude, everything=everything)
    except SettingsError as error:
        raise click.UsageError(f"--include/--exclude: {error}") from error
    recipe = wiring.ingest_recipe(settings, base_url=base_url, whole_documents=no_chunking)
    job = _IngestJob(paths, Project.named(project), recipe, rules, prune=prune, reembed=reembed)
    if plan_only:
        preview = await job.preview(settings, rebuild=rebuild)
        click.echo(json.dumps(asdict(preview), ensure_ascii=False) if as_json else _preview_text(preview))
        sys.exit(1 if preview.errors else 0)
    result = await job.run(settings, wait=not no_wait, quiet=as_json, rebuild=rebuild)
    _print_result(result, as_json=as_json)
    if watch:
        await _watch(job, settings, as_json=as_json)
    sys.exit(result.exit_code)


class _IngestJob:
    """The paths and options of this command; `--watch` runs them again and again."""

    def __init__(
        self,
        paths: tuple[Path, ...],
        project: Project,
        recipe: "Recipe",
        rules: "FileRules",
        *,
        prune: bool,
        reembed: bool,
    ) -> None:
        self.paths = paths
        self._project = project
        self._recipe = recipe
        self._rules = rules
        self._options = {"prune": prune, "reembed": reembed}

    async def run(self, settings: "Settings", *, wait: bool, quiet: bool, rebuild: bool = False) -> IngestResult:
        from citewell import wiring
        from citewell.ingest import flow

        with (
            Progress("Ingesting", unit="files", quiet=quiet) as file_progress,
            Progress("Embedding", unit="chunks", quiet=quiet) as chunk_progress,
        ):
            async with wiring.open_for_ingest(
                settings, project=self._project.id, wait=wait, on_wait=_print_waiting, rebuild=rebuild
            ) as engines:
                result = await flow.ingest(
                    self.paths,
                    project=self._project,
                    engines=engines,
                    recipe=self._recipe,
                    rules=self._rules,
                    progress=file_progress,
                    reembed_progress=chunk_progress,
                    **self._options,
                )
        if self._options["reembed"] and not quiet:
            click.echo(f"Rebuilt the index with {engines.embedder.model}.", err=True)
        return result

    async def preview(self, settings: "Settings", *, rebuild: bool) -> Preview:
        from citewell import wiring
        from citewell.ingest.preview import preview

        async with wiring.open_for_preview(settings, project=self._project.id, rebuild=rebuild) as engines:
            return await preview(
                self.paths,
                project=self._project,
                engines=engines,
                recipe=self._recipe,
                rules=self._rules,
                **self._options,
            )


async def _watch(job: _IngestJob, settings: "Settings", *, as_json: bool) -> None:
    """Ingest again after every change, until interrupted."""
    from watchfiles import awatch

    click.echo("Watching for changes; press Ctrl-C to stop.", err=True)
    async for _ in awatch(*job.paths, step=200):
        result = await job.run(settings, wait=True, quiet=True)
        if result.chunks_created or result.files_removed or result.errors:
            _print_result(result, as_json=as_json)


def _print_waiting() -> None:
    click.echo("Another ingest is running; waiting for it to finish.", err=True)


def _print_result(result: IngestResult, *, as_json: bool) -> None:
    click.echo(json.dumps(_result_json(result), ensure_ascii=False) if as_json else _result_text(result))


def _preview_text(preview: Preview) -> str:
    lines = [
        f"{sign} {path}"
        for sign, paths in (("+", preview.added), ("~", preview.changed), ("-", preview.removed))
        for path in paths
    ]
    lines += [f"error: {error}" for error in preview.errors]
    files = {
        "added": preview.added,
        "changed": preview.changed,
        "unchanged": preview.unchanged,
        "removed": preview.removed,
    }
    chunks = {
        "added": preview.chunks_added,
        "kept in changed files": preview.chunks_unchanged,
        "removed": preview.chunks_removed,
    }
    lines += [
        "files   " + ", ".join(f"{len(paths)} {name}" for name, paths in files.items()),
        "chunks  " + ", ".join(f"{number} {name}" for name, number in chunks.items()),
        f"embeddings needed  {preview.embeddings_needed}",
        *_skipped_lines(preview.skipped, not_pruned=len(preview.not_pruned)),
        "Nothing was changed.",
    ]
    return "\n".join(lines)


def _result_json(result: IngestResult) -> dict[str, object]:
    return {
        "files_processed": result.files_processed,
        "chunks_created": result.chunks_created,
        "errors": list(result.errors),
        "exit_code": result.exit_code,
        "warnings": list(result.warnings),
        "files_unchanged": result.files_unchanged,
        "files_removed": result.files_removed,
        "files_not_pruned": result.files_not_pruned,
        "chunks_embedded": result.chunks_embedded,
        "seconds": round(result.seconds, 3),
        "skipped": [asdict(file) for file in result.skipped],
    }


def _result_text(result: IngestResult) -> str:
    lines = [f"warning: {warning}" for warning in result.warnings]
    lines += [f"error: {error}" for error in result.errors]
    lines += [
        f"files processed  {result.files_processed} ({result.files_unchanged} unchanged)",
        f"files removed    {result.files_removed}",
        f"chunks created   {result.chunks_created} ({result.chunks_embedded} embedded)",
        f"errors           {len(result.errors)}",
        f"took             {result.seconds:.1f} s",
        *_skipped_lines(result.skipped, not_pruned=result.files_not_pruned),
    ]
    return "\n".join(lines)


def _skipped_lines(skipped: Sequence[SkippedFile], *, not_pruned: int) -> list[str]:
    """What was skipped, and what stays indexed although its file is gone or skipped; a line each, if there is any."""
    folders = [file for file in skipped if file.path.endswith("/")]
    kinds = Counter(_skipped_kind(file) for file in skipped if not file.path.endswith("/")).most_common()
    counts = [f"{count} {kind}" for kind, count in kinds[:_MAX_SKIPPED_KINDS]]
    if others := sum(count for _, count in kinds[_MAX_SKIPPED_KINDS:]):
        counts.append(f"{others} others")
    for reason in dict.fromkeys(folder.reason for folder in folders):
        names = [f"{PurePosixPath(folder.path).name}/" for folder in folders if folder.reason == reason]
        shown = " ".join(dict.fromkeys(names[:_MAX_FOLDER_NAMES])) + (" …" if names[_MAX_FOLDER_NAMES:] else "")
        counts.append(f"{len(names)} {'folder' if len(names) == 1 else 'folders'} ({reason}: {shown})")
    lines = [f"skipped: {', '.join(counts)}"] if counts else []
    if not_pruned:
        what = "1 indexed document is" if not_pruned == 1 else f"{not_pruned} indexed documents are"
        lines.append(f"{what} gone from the folder, or skipped now; use --prune to remove such documents")
    return lines


def _skipped_kind(file: SkippedFile) -> str:
    """What a skipped file is counted as: ".css (not documents)", "hidden", "ignored by .gitignore"."""
    if file.reason in ("not supported", "not documents", "generated"):
        return f"{PurePosixPath(file.path).suffix or 'without a suffix'} ({file.reason})"
    return file.reason
