"""The console in a real browser, Debian's chromium: pages, actions, keys, a phone, the dark, and axe-core.

With PYKAFKA_BROKER_SCREENSHOTS set to a folder, it writes the pictures of docs/console.md there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet
import pytest
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from pykafka_broker.cli.produce import NewRecord, Writer
from pykafka_broker.cli.share_group_state import set_start_offsets
from pykafka_broker.cli.topics import delete_topics
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.offsets import commit_offsets
from pykafka_broker.client.producer import Producer
from pykafka_broker.console import app
from pykafka_broker.console.routes import PAGES as ROUTES
from pykafka_broker.console.server import bound, server
from pykafka_broker.console.settings import Settings
from pykafka_broker.protocol.records.batch import build_batch
from pykafka_broker.spark.progress import described
from tests.cli.conftest import RunningBroker
from tests.cli.test_explain import join_and_leave
from tests.console.conftest import overrides
from tests.console.test_messages import MARK_UP
from tests.console.test_topics import create
from tests.console.test_transactions import hang
from tests.support.pages import REPOSITORY

pytestmark = pytest.mark.slow

AXE = "axe-core@4.10.3"
DESK, PHONE = (1120, 800), (360, 740)
PATIENCE_S = 60
#: The pages by the names of their pictures.
PAGES = {
    "cluster": "/",
    "topics": "/topics",
    "topic": "/topics/orders",
    "records": "/topics/orders/messages",
    "tail": "/topics/orders/messages/tail",
    "profile": "/topics/orders/profile",
    "groups": "/groups",
    "group": "/groups/of?group=billing",
    "share-group": "/groups/of?group=sharers",
    "reset": "/groups/reset?group=billing&to=to_earliest",
    "transactions": "/transactions",
    "transaction": "/transactions/of?id=payer",
    "hanging": "/transactions/hanging?topic=stuck&partition=0&offset=0",
    "explain": "/explain?kind=group&name=billing",
    "quorum": "/quorum",
    "access": "/access",
    "disks": "/disks",
    "spark": "/spark",
    "sign-in": "/sign-in",
    "error": "/topics/unknown",
}
#: Topics with a transaction that hangs: one to look at, the others to abort it, with and without scripts.
HANGING = ("stuck", "stuck-true", "stuck-false")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with ACLs and a history, in which transactions may hang: it does not ask their coordinator."""
    unverified = [*overrides(), "transaction.partition.verification.enable=false"]
    with RunningBroker(tmp_path_factory.mktemp("data"), overrides=unverified) as running:
        yield running.address


@contextmanager
def serving(settings: Settings) -> Iterator[str]:
    """The URL of a console on a socket."""
    taken = bound("127.0.0.1", 0)
    port = taken.getsockname()[1]
    served = server(settings._replace(port=port))
    thread = threading.Thread(target=served.run, args=([taken],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        served.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def site(broker: str) -> Iterator[str]:
    """A console that may write, on a socket, of a cluster with something of everything."""
    with Client(broker) as client:
        create(client, "orders", "payments", partitions=3, retention_ms="3600000")
        Writer(client, "orders", headers=(("trace", b"7"),)).write(
            [
                *(NewRecord(b"order-%d" % n, b'{"id": %d, "to": {"city": "Oslo"}}' % n) for n in range(20)),
                NewRecord(MARK_UP.encode(), MARK_UP.encode()),
            ]
        )
        for group, metadata in (("billing", ""), ("to-lake", described("orders-to-lake", 7))):
            commit_offsets(client, client.coordinator(group), group, {("orders", 0): 1}, metadata)
        join_and_leave(client, "billing")
        set_start_offsets(client, "sharers", {("orders", 0): 0})
        producer = Producer(client, "payer", transaction_timeout_ms=600_000)
        producer.initialise()
        producer.write(("payments", 0), build_batch([(0, b"k", b"v", ())]))
        for topic in HANGING:
            create(client, topic)
            hang(client, topic)
    with serving(Settings(broker, write=True)) as at:
        yield at


def chromium(*, scripts: bool = True) -> webdriver.Chrome:
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.fail("needs Debian's chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    if not scripts:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


@pytest.fixture(scope="module")
def light() -> Iterator[webdriver.Chrome]:
    with chromium() as browser:
        browser.set_window_size(*DESK)
        yield browser


@pytest.fixture(scope="module")
def dark() -> Iterator[webdriver.Chrome]:
    with chromium() as browser:
        browser.set_window_size(*DESK)
        features = [{"name": "prefers-color-scheme", "value": "dark"}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        yield browser


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe-core, kept among what tests have fetched."""
    folder = REPOSITORY / ".cache" / "axe-core"
    script = folder / "package" / "axe.min.js"
    if not script.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", AXE], cwd=folder, check=True, capture_output=True)
        [archive] = folder.glob("*.tgz")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
    return script.read_text()


def serious(browser: webdriver.Chrome, axe: str) -> list[tuple[str, str, list[str]]]:
    """What axe-core finds on the page and calls serious or critical."""
    # By the debugger: the page's own policy lets no foreign script in.
    browser.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})
    found: list[dict[str, Any]] = browser.execute_async_script(
        "const done = arguments[0]; axe.run(document).then((result) => done(result.violations));"
    )
    return [
        (each["id"], each["impact"], [node["html"] for node in each["nodes"]])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


def problems(browser: webdriver.Chrome) -> list[str]:
    """What the browser has complained of, such as content that the policy refuses."""
    untyped: Any = browser
    entries: list[dict[str, str]] = untyped.get_log("browser")
    return [entry["message"] for entry in entries]


def keep(browser: webdriver.Chrome, name: str) -> None:
    folder = os.environ.get("PYKAFKA_BROKER_SCREENSHOTS")
    if folder:
        browser.save_screenshot(str(Path(folder) / f"{name}.png"))


def waited(browser: webdriver.Chrome) -> WebDriverWait[webdriver.Chrome]:
    # An element that was found may be gone before it is asked: the page has changed meanwhile.
    return WebDriverWait(browser, PATIENCE_S, ignored_exceptions=[StaleElementReferenceException])


@pytest.mark.parametrize("path", [path for path, _ in ROUTES])
def test_each_page_is_among_those_that_are_looked_at(path: str) -> None:
    pattern = re.sub(r"\\{topic\\}", "[^/]+", re.escape(path))

    assert any(re.fullmatch(pattern, urlsplit(shown).path) for shown in PAGES.values())


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_fit_for_all(light: webdriver.Chrome, site: str, axe: str, name: str) -> None:
    """For people who use a screen reader, and on a phone: nothing serious, nothing wider than the screen."""
    light.set_window_size(*DESK)
    light.get(site + PAGES[name])
    assert light.find_element(By.TAG_NAME, "h1").text
    assert serious(light, axe) == []
    if name != "cluster":  # its picture is taken when there are numbers
        keep(light, name)
    light.set_window_size(*PHONE)
    width, fits = light.execute_script(
        "return [window.innerWidth, document.documentElement.scrollWidth <= window.innerWidth]"
    )
    assert (width <= 500, fits) == (True, True)
    assert serious(light, axe) == []
    if name == "records":
        keep(light, "phone")
    if name != "error":
        assert problems(light) == []


@pytest.mark.parametrize("name", ["cluster", "records", "group", "access"])
def test_a_page_is_legible_in_the_dark(dark: webdriver.Chrome, site: str, axe: str, name: str) -> None:
    dark.get(site + PAGES[name])

    assert dark.execute_script("return matchMedia('(prefers-color-scheme: dark)').matches")
    assert serious(dark, axe) == []
    if name == "cluster":
        keep(dark, "dark")


def test_numbers_and_records_come_by_themselves(light: webdriver.Chrome, site: str, broker: str) -> None:
    light.set_window_size(*DESK)
    light.get(site)
    waited(light).until(
        lambda browser: all(
            (course.get_attribute("points") or "").count(",") >= 2
            for course in browser.find_elements(By.CSS_SELECTOR, "figure polyline")
        )
    )
    keep(light, "cluster")
    light.get(f"{site}/topics/payments/messages/tail")
    with Client(broker) as client:
        writer = Writer(client, "payments", partition=1)

        def came(browser: webdriver.Chrome) -> bool:
            # The page may have been opened at the end that was before this record.
            writer.write([NewRecord(b"key", MARK_UP.encode())])
            return MARK_UP in browser.find_element(By.TAG_NAME, "tbody").text

        waited(light).until(came)
    assert light.find_elements(By.CSS_SELECTOR, "tbody img, tbody script") == []


def notice_on(browser: webdriver.Chrome, told: str) -> None:
    waited(browser).until(lambda browser: told in browser.find_element(By.ID, "live").text)


def test_a_page_says_when_its_numbers_are_no_longer_live(
    light: webdriver.Chrome, site: str, broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the cluster answers with an error, and where the stream is refused, which ends it for good."""
    with Client(broker) as client:
        create(client, "gone-while-followed")
        light.get(f"{site}/topics/gone-while-followed/messages/tail")
        assert list(delete_topics(client, ["gone-while-followed"]))
        notice_on(light, "Not live now: ")
    monkeypatch.setattr(app, "MAX_STREAMS", 0)
    light.get(site)
    notice_on(light, "No longer live: load the page again.")
    # Other tests shall not find the complaint about the refusal.
    problems(light)


def test_everything_can_be_done_with_the_keys(light: webdriver.Chrome, site: str) -> None:
    """From the top of a page: the first stop skips to the content, and a form further down can be reached."""
    light.set_window_size(*DESK)
    light.get(f"{site}/topics")
    light.switch_to.active_element.send_keys(Keys.TAB)
    assert light.switch_to.active_element.text == "Skip to the content"
    light.switch_to.active_element.send_keys(Keys.ENTER)
    assert light.execute_script("return document.activeElement.id") == "main"
    for _ in range(40):
        light.switch_to.active_element.send_keys(Keys.TAB)
        if light.switch_to.active_element.get_attribute("name") == "name":
            break
    light.switch_to.active_element.send_keys("by-keys", Keys.ENTER)

    waited(light).until(lambda browser: browser.find_element(By.TAG_NAME, "h1").text == "Topic by-keys")
    assert light.find_element(By.CSS_SELECTOR, "[role=status]").text == "It is created."


def fill_in(browser: webdriver.Chrome, action: str, **fields: str) -> None:
    """Fill in the form with this action, and send it."""
    form = browser.find_element(By.CSS_SELECTOR, f"form[method=post][action='{action}']")
    for name, value in fields.items():
        field = form.find_element(By.NAME, name)
        if field.tag_name == "select":
            Select(field).select_by_value(value)
        else:
            field.send_keys(value)
    page = browser.find_element(By.TAG_NAME, "html")
    form.find_element(By.TAG_NAME, "button").click()
    # The element of the former page is not asked whether it is gone: in between, that ends with an error.
    waited(browser).until(lambda browser: browser.find_element(By.TAG_NAME, "html") != page)


def status_of(browser: webdriver.Chrome) -> str:
    return browser.find_element(By.CSS_SELECTOR, "[role=status]").text


ACL = {
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "LITERAL",
    "principal": "User:carol",
    "operation": "READ",
    "permission": "ALLOW",
}


@pytest.mark.parametrize("scripts", [True, False])
def test_each_action_is_done(site: str, scripts: bool) -> None:
    """With and without scripts."""
    topic = f"acted-{scripts}".lower()
    with chromium(scripts=scripts) as browser:
        browser.get(f"{site}/topics")
        fill_in(browser, "/topics", name=topic, partitions="1", configs="retention.ms=60000")
        assert status_of(browser) == "It is created."
        for action, fields, done in (
            ("/partitions", {"partitions": "2"}, "It is changed."),
            ("/configs", {"key": "cleanup.policy", "value": "compact"}, "It is changed."),
        ):
            fill_in(browser, f"/topics/{topic}{action}", **fields)
            assert status_of(browser) == done
        browser.get(f"{site}/topics/{topic}/messages")
        fill_in(browser, f"/topics/{topic}/produce", key="k", value="v", headers="a=1")
        assert status_of(browser) == "The record is written."
        browser.get(f"{site}/groups/reset?group=billing&to=to_latest")
        fill_in(browser, "/groups/reset")
        assert status_of(browser) == "It is changed."
        browser.get(f"{site}/access")
        fill_in(browser, "/access/add", **ACL)
        assert status_of(browser) == "It is changed."
        fill_in(browser, "/access/remove", **ACL)
        assert status_of(browser) == "It is changed."
        browser.get(f"{site}/topics/{topic}")
        fill_in(browser, f"/topics/{topic}/delete", name=topic)
        assert status_of(browser) == "It is deleted."
        stuck = f"stuck-{scripts}".lower()
        browser.get(f"{site}/transactions/hanging?topic={stuck}&partition=0&offset=0")
        fill_in(browser, "/transactions/hanging/abort", name=f"{stuck}-0")
        assert status_of(browser) == "It is aborted."
        if scripts:
            browser.get(f"{site}/transactions/of?id=payer")
            fill_in(browser, "/transactions/abort", name="payer")
            assert status_of(browser) == "It is aborted."
            browser.get(f"{site}/groups/of?group=to-lake")
            fill_in(browser, "/groups/delete", name="to-lake")
            assert status_of(browser) == "It is deleted."


@pytest.mark.parametrize("scripts", [True, False])
def test_a_user_signs_in_and_out(secured: Settings, scripts: bool) -> None:
    with serving(secured) as at, chromium(scripts=scripts) as browser:

        def title() -> str:
            return browser.find_element(By.TAG_NAME, "h1").text

        browser.get(f"{at}/topics")
        assert title() == "Sign in"
        fill_in(browser, "/sign-in", user="bob", password="wrong", mechanism="PLAIN")
        assert "Invalid username or password" in browser.find_element(By.CSS_SELECTOR, "[role=alert]").text
        fill_in(browser, "/sign-in", user="bob", password="bob-secret", mechanism="PLAIN")
        assert title() == "Cluster"
        assert "bob" in browser.find_element(By.TAG_NAME, "header").text
        fill_in(browser, "/sign-out")
        assert title() == "Sign in"
        browser.get(f"{at}/topics")
        assert title() == "Sign in"


def test_records_are_downloaded(light: webdriver.Chrome, site: str, tmp_path: Path) -> None:
    where = {"behavior": "allow", "downloadPath": str(tmp_path)}
    light.execute_cdp_cmd("Browser.setDownloadBehavior", where)
    light.get(f"{site}/topics/orders/messages")
    for form in ("JSON lines", "Parquet"):
        light.find_element(By.LINK_TEXT, f"Download as {form}").click()
    # A file has another name before it is complete.
    waited(light).until(lambda _: {"orders.jsonl", "orders.parquet"}.issubset(os.listdir(tmp_path)))

    assert len((tmp_path / "orders.jsonl").read_text().splitlines()) == 21
    assert pyarrow.parquet.read_table(tmp_path / "orders.parquet").num_rows == 21


def test_no_other_site_can_show_a_page_in_a_frame(light: webdriver.Chrome, site: str, tmp_path: Path) -> None:
    page = tmp_path / "elsewhere.html"
    page.write_text(f'<iframe src="{site}/topics"></iframe>')
    light.get(page.as_uri())

    light.switch_to.frame(0)
    in_frame = light.page_source
    light.switch_to.default_content()
    light.get(f"{site}/topics")

    assert ("All topics" in in_frame, "All topics" in light.page_source) == (False, True)
