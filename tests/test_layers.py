"""The contract type of our own that `lint-imports` checks together with the layers."""

import grimp

from tests.import_contracts import reaching_imports


def graph_of(*imports: tuple[str, str]) -> grimp.ImportGraph:
    graph = grimp.ImportGraph()
    for module in ("shop", "shop.cart", "shop.cart.prices", "shop.cart.sums", "shop.till"):
        graph.add_module(module)
    for importer, imported in imports:
        graph.add_import(importer=importer, imported=imported)
    return graph


def test_other_packages_may_import_a_package() -> None:
    graph = graph_of(("shop.till", "shop.cart"), ("shop.cart", "shop.cart.prices"))
    assert reaching_imports(graph, "shop.cart") == []


def test_modules_of_a_package_may_import_each_other() -> None:
    assert reaching_imports(graph_of(("shop.cart.sums", "shop.cart.prices")), "shop.cart") == []


def test_reaching_into_a_package_is_found() -> None:
    graph = graph_of(("shop.till", "shop.cart.prices"))
    assert reaching_imports(graph, "shop.cart") == [("shop.till", "shop.cart.prices")]
