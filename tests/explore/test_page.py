"""The page in a real browser: `uv run --extra explore --group browser pytest -m exhaustive …`."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import pytest

LIMIT_S = 120.0
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
pytestmark = pytest.mark.exhaustive


@pytest.fixture
def address() -> Iterator[str]:
    pytest.importorskip("marimo", reason="needs the extra: --extra explore")
    command = [sys.executable, "-m", "collwise", "explore", "--no-browser", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            lines: list[str] = []
            while "}\n" not in lines:
                lines.append(server.stdout.readline())
                assert lines[-1], "the server ended"
            yield json.loads("".join(lines))["address"]
        finally:
            server.terminate()
            server.wait(LIMIT_S)


@pytest.fixture
def page(address: str) -> Iterator[Any]:
    browsers = pytest.importorskip("playwright.sync_api", reason="needs --group browser")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium")
    with browsers.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.set_default_timeout(1e3 * LIMIT_S)
        page.goto(address)
        yield page
        browser.close()


def test_sliders_menus_and_export(page: Any, tmp_path: Path) -> None:
    page.get_by_text("broadcast/postal_tree(lam=2) completes after 7 t0").wait_for()
    assert page.locator("svg[viewBox]").filter(has=page.locator("path")).count() >= 4
    page.get_by_role("slider").nth(1).press("ArrowRight")  # λ
    page.get_by_text("broadcast/postal_tree(lam=9/4) completes after").wait_for()
    with page.expect_download() as download:
        page.get_by_text("SVG", exact=True).first.click()
    saved = tmp_path / "tree.svg"
    download.value.save_as(saved)
    assert ElementTree.parse(saved).getroot().tag.endswith("svg")
    page.get_by_label("algorithm").select_option("broadcast/flat")
    page.get_by_text("broadcast/flat completes after").wait_for()
    page.get_by_label("collective").select_option("allgatherv")
    page.get_by_text("allgatherv/").first.wait_for()
    page.get_by_label("machine").select_option("paragon")
    page.get_by_text("--preset paragon").wait_for()
    sliders = page.get_by_role("slider")
    sliders.nth(3).wait_for()
    assert sliders.count() == 4  # ranks, λ, bytes, sources; none took another's place
    sliders.nth(2).press("ArrowRight")
    page.get_by_text("--bytes 2048").wait_for()
    page.screenshot(path=tmp_path / "page.png", full_page=True)
    print("the page is", tmp_path / "page.png")


def test_strangers_get_nothing(address: str) -> None:
    """Neither without the token of the address, nor under another name for this machine."""

    def status(url: str, host: str) -> int:
        try:
            with urlopen(Request(url, headers={"Host": host}), timeout=LIMIT_S) as answer:
                return int(answer.status)
        except HTTPError as refused:
            refused.close()
            return refused.code

    parts = urlsplit(address)
    assert status(address, parts.netloc) == 200
    assert status(f"http://{parts.netloc}/", parts.netloc) == 404
    assert status(f"http://{parts.netloc}/api/status", parts.netloc) == 404
    assert status(address, "evil.example") == 400
