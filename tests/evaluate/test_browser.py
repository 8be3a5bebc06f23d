"""The report and the documentation site in a real browser: no errors, nothing too wide for a phone, no request."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import orcast as oc
from orcast.evaluate import report
from pages import NASTY, binary, labels, one_series, panel

CHROME = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
DRIVER = shutil.which("chromedriver")
if CHROME is None or DRIVER is None:
    pytest.skip("chromium and chromedriver are not installed", allow_module_level=True)
pytest.importorskip("selenium", reason="selenium is not installed")

ROOT = Path(__file__).resolve().parents[2]
PHONE, DESK = 360, 1200


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with everything in it, and names that try to break out."""
    many = panel((*NASTY, *(f"store {i:02d} in a street with a long name" for i in range(60))), 30)
    path = tmp_path_factory.mktemp("browser") / "report.html"
    report.write(path, [one_series(), many, binary(), labels(NASTY[:3])], source=NASTY[0])
    return path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documentation site, built from a copy of its pages."""
    pytest.importorskip("zensical", reason="zensical is not installed")
    folder = tmp_path_factory.mktemp("docs")
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    (folder / "src").symlink_to(ROOT / "src")
    paths = os.pathsep.join([str(folder / "docs"), str(ROOT / "src")])
    build = [sys.executable, "-m", "zensical", "build"]
    subprocess.run(build, cwd=folder, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, check=True)
    return folder / "site"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = str(CHROME)
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--hide-scrollbars",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    # the site keeps the scheme that it began with
    forgets = "if (location.protocol === 'file:') localStorage.clear()"
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": forgets})
    try:
        yield driver
    finally:
        driver.quit()


def show(browser: Any, page: Path, *, width: int, dark: bool = False) -> None:
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": [scheme]})
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())


def forget(browser: Any) -> None:
    """Leave out of the logs what was before."""
    browser.get_log("performance")
    browser.get_log("browser")


def requests(browser: Any, page: Path) -> set[str]:
    """What a page has asked for; the browser's own pages ask for things too."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return {request["request"]["url"] for request in sent if request["documentURL"].startswith(page.as_uri())}


def test_no_error_and_no_request_leaves_the_file(browser: Any, page: Path) -> None:
    forget(browser)
    show(browser, page, width=DESK)
    assert browser.get_log("browser") == []
    asked = requests(browser, page)
    assert asked <= {page.as_uri(), "data:,"}
    assert page.as_uri() in asked
    # no script came in by a name, and none could run
    assert browser.execute_script("return document.scripts.length") == 0
    assert NASTY[0] in browser.execute_script("return document.body.innerText")


# words of a picture beyond the page, words that run into each other, and marks beyond their picture
BEYOND = """
const box = e => e.getBoundingClientRect(), all = (e, q) => [...e.querySelectorAll(q)];
const shown = e => all(e, 'text').filter(t => t.getClientRects().length).map(box);
return all(document, 'svg.chart').flatMap(c => {
  const ends = shown(c).filter(b => b.left < -1 || b.right > innerWidth + 1);
  const axis = all(c, 'text.across').map(box).filter(b => b.width > 0).sort((p, q) => p.left - q.left);
  const touching = axis.slice(1).filter((b, i) => b.left < axis[i].right);
  const outer = box(c), marks = all(c, 'path').map(box).filter(b => b.left < outer.left - 9
    || b.right > outer.right + 9 || b.top < outer.top - 9 || b.bottom > outer.bottom + 9);
  return [...ends, ...touching, ...marks].map(b => c.ariaLabel) })"""


@pytest.mark.parametrize("width", [PHONE, 768, DESK])
def test_everything_fits_the_page_and_is_large_enough(browser: Any, page: Path, width: int) -> None:
    show(browser, page, width=width)
    for state in ("folded", "unfolded"):
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width, state
        assert browser.execute_script(BEYOND) == [], state
        browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true })")
    least = browser.execute_script(
        "return Math.min(...[...document.querySelectorAll('svg.chart text, p, td, th, dd')]"
        ".map(t => parseFloat(getComputedStyle(t).fontSize)))"
    )
    assert least >= 12.0


def test_dark_differs_from_light(browser: Any, page: Path) -> None:
    seen = {}
    for dark in (False, True):
        show(browser, page, width=PHONE, dark=dark)
        seen[dark] = browser.execute_script(
            "const of = (q, what) => getComputedStyle(document.querySelector(q))[what];"
            "return [of('body', 'backgroundColor'), of('body', 'color'), of('path.area.after', 'fill'),"
            " of('path.line.before', 'stroke'), of('.chart text', 'fill')]"
        )
    assert all(light != dark for light, dark in zip(seen[False], seen[True], strict=True))
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == seen[False][0]


# --- the documentation site -----------------------------------------------------------------------


def test_the_site_searches_from_a_file_and_asks_nobody(browser: Any, site: Path) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    forget(browser)
    show(browser, site / "index.html", width=DESK)
    browser.find_element(By.TAG_NAME, "body").send_keys("/")
    # the search is a shadow tree
    deepest = "let a = document.activeElement; while (a.shadowRoot) a = a.shadowRoot.activeElement; return a"
    field = WebDriverWait(browser, 120).until(
        lambda _: (found := browser.execute_script(deepest)) and found.tag_name == "input" and found
    )
    field.send_keys("worst_next")
    assert field.get_attribute("value") == "worst_next"
    links = (
        "const all = r => [...r.querySelectorAll('*')].flatMap(e => [e, ...(e.shadowRoot ? all(e.shadowRoot) : [])]);"
        "return all(document).filter(e => e.tagName === 'A' && e.href.includes('h=worst_next')).map(e => e.href)"
    )
    found = WebDriverWait(browser, 120).until(lambda _: browser.execute_script(links))
    assert any(link.endswith("#orcast.Certificate") for link in found)
    assert browser.get_log("browser") == []
    asked = requests(browser, site / "index.html")
    assert any("search.js" in url for url in asked)
    assert all(url.startswith((site.as_uri(), "data:")) for url in asked), asked


@pytest.mark.parametrize("name", ["index", "howto/late-outcomes", "reference/recalibrator", "comparison"])
def test_pages_of_the_site_are_light_and_dark_and_fit_a_phone(browser: Any, site: Path, name: str) -> None:
    seen = []
    for dark in (False, True):
        show(browser, site / f"{name}.html", width=PHONE, dark=dark)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= PHONE
        seen.append(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert seen[0] != seen[1]


def test_no_script_of_a_hostile_name_runs_on_the_pages_of_the_service(browser: Any, tmp_path: Path) -> None:
    for module in ("msgspec", "prometheus_client", "starlette", "uvicorn"):
        pytest.importorskip(module, reason=f"{module} is not installed")
    from serving import Served

    served = Served(f"sqlite:///{tmp_path}/store.db")
    try:
        names = [name for name in NASTY if name.strip() and "\ud800" not in name and len(name) < 2000]
        with oc.Client(served.url) as client:
            for name in names:
                series = client.series(name, low=0, high=1)
                for t in range(40):
                    series.predict(oc.Normal(0.5, 0.1), id=f"{name}{t}", horizon=t % 3 if t % 2 else name)
                    series.update(t / 40, id=f"{name}{t}")
        for page in ("", *(f"series/{quote(name, safe='')}" for name in names)):
            forget(browser)
            for width in (PHONE, DESK):
                size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
                browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                browser.get(f"{served.url}/{page}")
                assert browser.execute_script("return document.scripts.length + document.images.length") == 0
                assert browser.execute_script("return document.documentElement.scrollWidth") <= width
                # the base forecasts are too narrow
                assert "base forecast: 90% interval covers" in browser.execute_script("return document.body.innerText")
            assert browser.get_log("browser") == []
    finally:
        served.kill()
