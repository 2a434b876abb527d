"""Names of views, and quoting in Spark SQL."""

from __future__ import annotations

import pytest

from sqlstream.compiler.sql.sql_text import quote_identifier, view_name


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("orders", "orders"),
        ("_Orders2", "_Orders2"),
        ("2orders", "`2orders`"),
        ("my-orders", "`my-orders`"),
        ("a b", "`a b`"),
        ("bestellungen_für", "`bestellungen_für`"),
        ("a`b", "`a``b`"),
        ("left", "`left`"),
        ("Anti", "`Anti`"),
        ("select", "`select`"),
        ("values", "`values`"),
        ("", "``"),
    ],
)
def test_identifier(name: str, written: str) -> None:
    """A name is quoted if Spark would not read it as one identifier."""
    assert quote_identifier(name) == written


def test_view_names() -> None:
    """A model's view has the model's name; a source table's view joins the source and table names."""
    assert (view_name(("orders",)), view_name(("shop", "orders"))) == ("orders", "shop__orders")
