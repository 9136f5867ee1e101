"""docs/trust.md is what its tool makes of docs/trust.json."""

from __future__ import annotations

import json

from tools import trust_page


def test_the_page_is_made_of_the_results() -> None:
    assert trust_page.PAGE.read_text() == trust_page.page(json.loads(trust_page.RESULTS.read_text()))


def test_every_finding_of_the_results_is_on_the_page() -> None:
    results = json.loads(trust_page.RESULTS.read_text())
    text = trust_page.PAGE.read_text()
    assert all(finding["title"] in text for one in results["kinds"] for finding in one["findings"])
