"""A contract type for import-linter: other packages import a closed package, never one of its modules.

`pyproject.toml` names the closed packages; `lint-imports` checks them.
"""

import grimp
from importlinter import Contract, ContractCheck, fields, output
from importlinter.domain import helpers


class ClosedPackages(Contract):
    """Keeps every module outside a package from importing the modules inside it.

    Configuration:
        packages: the closed packages; "citewell.answer.*" stands for every package in `citewell.answer`.
    """

    type_name = "closed_packages"

    packages = fields.ListField(subfield=fields.ModuleExpressionField())

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002
        packages = helpers.module_expressions_to_modules(
            graph=graph,
            expressions=self.packages,  # type: ignore[arg-type]  # the field becomes its value
            as_packages=False,
        )
        illegal = [
            link for name in sorted(package.name for package in packages) for link in reaching_imports(graph, name)
        ]
        return ContractCheck(kept=not illegal, metadata={"illegal": illegal})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for importer, imported in check.metadata["illegal"]:
            output.print_error(f"- {importer} imports {imported}; import its package instead", bold=False)


def reaching_imports(graph: grimp.ImportGraph, package: str) -> list[tuple[str, str]]:
    """Each import of a module inside the package by a module outside it."""
    inside = graph.find_descendants(package) | {package}
    return [
        (importer, imported)
        for imported in sorted(inside - {package})
        for importer in sorted(graph.find_modules_that_directly_import(imported) - inside)
    ]
