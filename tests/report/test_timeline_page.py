"""The page with its timeline, used in headless Chromium: by mouse, by keyboard, on wide and narrow screens."""

from __future__ import annotations

import re
import time
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest

from browser import Tab, axe_source, browser
from kafka_trial.cluster.versions import KNOWN
from kafka_trial.history.recorder import Recorder
from kafka_trial.history.store import RunFolder
from kafka_trial.judge.cache import slice_rows
from kafka_trial.report.certificate import PAGE as CERTIFICATE_PAGE
from kafka_trial.report.certificate import Certificate, CertifiedTrial, write_certificate
from kafka_trial.report.html import html_of, in_script, write_reports
from kafka_trial.report.report_data import read_report
from kafka_trial.report.timeline import read_timeline
from lab.scale.history import write_history
from lab.scale.shapes import Shape
from literal_run import NASTY, SECOND, anomaly, make_folder, verdict

HOSTILE = "</script><!--<script><img src=x onerror=alert(1)>\u2028" + NASTY
SENTENCE = f"record of key {HOSTILE} fell"
ELSEWHERE = {"sentence": "record 7 was never seen", "events": ["consumer-m2-0#3"], "attributes": {"offset": 7}}
DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
VIEW, DETAIL = ("document.getElementById('timeline-view').textContent", "document.querySelector('.detail').textContent")
ENTRIES = "[...document.querySelectorAll('ol.anomalies button')]"


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Returns a page of a browser that all tests of this file use."""
    with browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the page of a literal trial: a fault, two members, an anomaly whose sentence is hostile."""
    folder = make_folder(tmp_path_factory.mktemp("trial"))
    with Recorder(folder.history, "nemesis") as nemesis:
        about = {"fault_no": 0, "fault": "pause", "target": "member: m1"}
        for kind, at_s in (("injecting", 9), ("injected", 10), ("healed", 14)):
            nemesis.record(kind, time_ns=at_s * SECOND, **about)
    with Recorder(folder.history, "consumer-m2-0") as member:
        who = {"member": "m2", "incarnation": 0}
        member.record("started", time_ns=3 * SECOND, pid=1, lane=2, **who)
        member.record("assigned", time_ns=15 * SECOND, entries=[{"topic": "t", "partition": 1}], **who)
        for kind, at_s in (("delivered", 16), ("processed", 17)):
            place = {"topic": "t", "partition": 1, "offset": 11, "key": NASTY}
            outcome = {"outcome": "done"} if kind == "processed" else {}
            member.record(kind, time_ns=at_s * SECOND, **place, **outcome, **who)
    lines = [anomaly(), anomaly() | {"anomaly": "skipped", "sentence": SENTENCE, "events": ["consumer-m1-0#3"]}]
    lines += [anomaly() | {"anomaly": "unseen", "partition": 2, "weight": "undecided"} | ELSEWHERE]
    (folder.path / "anomalies.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    write_reports(folder)
    return folder.path / "report.html"


def opened(tab: Tab, page: Path, *, width: int = 1280) -> Tab:
    """Shows a page, drawn."""
    tab.open(page, width=width)
    tab.js(DRAWN)
    return tab


def press_button(tab: Tab, name: str) -> None:
    """Moves the focus to a button, and presses it by a key."""
    tab.js(f"[...document.querySelectorAll('button')].find(one => one.textContent === {name!r}).focus()")
    tab.press("Enter")


def middle_of(tab: Tab, row: str, lane: str, at_ms: int) -> tuple[float, float]:
    """Returns where an instant of a lane is in the window, its row scrolled into sight; the whole trial is in view."""
    place = f"""(() => {{
      const svg = document.querySelector('#row-{row} svg'); svg.scrollIntoView({{block: 'center'}});
      const box = svg.getBoundingClientRect(), text = [...svg.querySelectorAll('.lane-name')];
      const name = text.find(one => one.textContent === {lane!r}).getBoundingClientRect();
      const {{begin_ms, end_ms}} = JSON.parse(document.getElementById('timeline-data').textContent).timeline;
      return [box.left + 56 + ({at_ms} - begin_ms) / (end_ms - begin_ms) * (box.width - 66), name.top + 6];
    }})()"""
    x, y = tab.js(place)
    return x, y


def test_the_policy_lets_in_only_the_page_itself(tab: Tab, page: Path) -> None:
    """Nothing is loaded or refused, an injected script does not run, and the hashes are those of script and style."""
    opened(tab, page)
    assert tab.complaints() == []
    tab.js("document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.hurt = 1'}))")
    text = page.read_text()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    (style,), (script,) = (re.findall(f"<{name}>(.*?)</{name}>", text, re.DOTALL) for name in ("style", "script"))
    hashes = [b64encode(sha256(part.encode()).digest()).decode() for part in (style, script)]
    wanted = f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'"
    assert (policy, tab.js("window.hurt ?? null")) == (wanted, None)


def test_what_a_consumer_wrote_stays_text(tab: Tab, page: Path) -> None:
    """A sentence full of markup ends no block: it is read in the list as it was written."""
    opened(tab, page)
    listed = tab.js(f"{ENTRIES}.map(one => one.textContent).join()")
    assert "</script><!--<script><img src=x onerror=alert(1)>" in listed
    assert tab.js("document.querySelectorAll('img, main script:not([type]), ol.anomalies script').length") == 0


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "\u2028\u2029", "]]>&amp;"])
def test_no_string_ends_the_block(text: str) -> None:
    """What a browser or a parser could take for an end is written in another way, and read back the same."""
    written = str(in_script({"text": text}))
    assert (set("<>&\u2028\u2029") & set(written), orjson.loads(written)) == (set(), {"text": text})


def test_pointing_says_what_happened(tab: Tab, page: Path) -> None:
    """The owner, a handler's run, a commit that fell and the fault; lag is told as count and as age."""
    opened(tab, page)
    seen = []
    for lane, at_ms in (("owner", 15500), ("handled", 16500), ("commits", 18000), ("owner", 11000)):
        tab.mouse("Moved", *middle_of(tab, "partition-0", lane, at_ms))
        seen.append(tab.js(DETAIL))
    assert [text.partition(" from")[0] for text in seen] == [
        "partition 1 was owned by m2",
        "m2 handled offset 11 of partition 1",
        "Committed offset 11 took effect at 18.000 s; it was higher before.",
        seen[3].partition(" from")[0],
    ]
    assert seen[3].endswith("During the fault pause on member: m1.")


def test_zoom_by_buttons_by_keys_and_by_dragging(tab: Tab, page: Path) -> None:
    """Each shows less of the trial, and `Whole trial` all of it again."""
    opened(tab, page)
    views = [tab.js(VIEW)]
    press_button(tab, "Zoom in")
    views.append(tab.js(VIEW))
    press_button(tab, "Whole trial")
    tab.js("document.getElementById('row-partition-0').focus()")
    tab.press("+", "+")
    views.append(tab.js(VIEW))
    tab.press("0")
    for kind, at_ms in (("Pressed", 5000), ("Moved", 10000), ("Released", 10000)):
        tab.mouse(kind, *middle_of(tab, "partition-0", "owner", at_ms))
    views.append(tab.js(VIEW))
    lengths = [float(to) - float(begin) for begin, to in (re.findall(r"-?\d+\.\d+", view) for view in views)]
    assert [round(lengths[0] / length, 1) for length in lengths] == pytest.approx([1, 2, 4, lengths[0] / 5], abs=0.1)


def test_arrows_go_from_event_to_event(tab: Tab, page: Path) -> None:
    """In a row that has the focus: the first one, the next, the last; what it was is told."""
    opened(tab, page)
    tab.js("document.getElementById('row-partition-0').focus()")
    seen = []
    for key in ("Home", "ArrowRight", "End"):
        tab.press(key)
        seen.append(tab.js(DETAIL))
    assert (len(set(seen)), seen[0].startswith("partition 1 was owned"), seen[2][:17]) == (3, True, "commit-regression")


def test_an_entry_of_the_list_jumps_to_its_place(tab: Tab, page: Path) -> None:
    """Its row has the focus and shows where; cause, remedy and proofs stand below; Escape leads back to the entry."""
    opened(tab, page)
    tab.js(f"({ENTRIES}).find(one => one.textContent.startsWith('commit-regression')).focus()")
    entry = tab.js("document.activeElement.textContent")
    tab.press("Enter")
    row = tab.js("document.activeElement.id")
    proof = tab.js("document.querySelector('.proof').textContent")
    assert (
        row,
        tab.js("document.querySelectorAll('#row-partition-0 .chosen, #row-partition-0 .proof-mark').length"),
    ) == (
        "row-partition-0",
        3,
    )
    assert [
        text for text in ("Usually: ", "Change: ", "offsets#0", "committed offset 11 took effect") if text not in proof
    ] == []
    tab.press("Escape")
    assert tab.js("document.activeElement.textContent") == entry


def chosen_in(tab: Tab, label: str, text: str) -> None:
    """Chooses from a selection of the filters, or types into a box of them."""
    tab.js(
        f"""(() => {{
          const labels = [...document.querySelectorAll('[role=search] label')];
          const wrapped = labels.find(one => one.textContent.startsWith({label!r}));
          const box = wrapped.querySelector('select, input');
          const choice = [...(box.options ?? [])].find(one => one.textContent.startsWith({text!r}));
          box.value = choice ? choice.value : {text!r};
          box.dispatchEvent(new Event(choice ? 'change' : 'input'));
        }})()"""
    )


@pytest.mark.parametrize(
    ("label", "text", "kinds"),
    [
        ("Kind", "skipped", ["skipped"]),
        ("Where", "partition 2", ["unseen"]),
        ("Member", "m2", ["unseen"]),
        ("Record", "11", ["commit-regression", "skipped"]),
        ("Search", "FELL from", ["commit-regression"]),
        ("Search", "offsets#0", ["commit-regression"]),
        ("Search", "nothing of the kind", []),
    ],
)
def test_the_list_opens_with_the_headline_and_is_filtered(
    tab: Tab, page: Path, label: str, text: str, kinds: list[str]
) -> None:
    """By kind, partition, member, record and words; how many match is told."""
    opened(tab, page)
    names = f"{ENTRIES}.map(one => one.textContent.split(' ')[0])"
    assert tab.js(names) == ["commit-regression", "skipped", "unseen"]
    chosen_in(tab, label, text)
    assert (tab.js(names), tab.js("document.querySelector('.tools + .soft').textContent")) == (
        kinds,
        f"{len(kinds)} of 3 match.",
    )


def test_partitions_fold(tab: Tab, page: Path) -> None:
    """Those with violations are unfolded, by their button also the others; a jump unfolds its own."""
    opened(tab, page)
    state = (
        "Object.fromEntries([...document.querySelectorAll('.fold')].map(one => [one.textContent, one.ariaExpanded]))"
    )
    lanes = "document.querySelectorAll('#row-partition-0 .lane-name').length"
    assert tab.js(state) == {
        "partition 1, 2 violations": "true",
        "partition 2": "false",
        "member m2": "false",
    }
    unfolded = tab.js(lanes)
    press_button(tab, "Fold all")
    assert 0 < tab.js(lanes) < unfolded
    press_button(tab, "partition 1, 2 violations")
    assert (tab.js(state)["partition 1, 2 violations"], tab.js(lanes)) == ("true", unfolded)
    press_button(tab, "Fold all")
    assert set(tab.js(state).values()) == {"false"}
    tab.js(f"({ENTRIES}).find(one => one.textContent.startsWith('unseen')).click()")
    assert [name for name, unfolded in tab.js(state).items() if unfolded == "true"] == ["partition 2"]


def test_a_link_to_an_explanation_unfolds_it(tab: Tab, page: Path) -> None:
    """What was not found is folded away; a link to it shows it."""
    opened(tab, page)
    tab.js("document.querySelector('a[href=\"#explain-zombie-commit\"]').click()")
    tab.js(DRAWN)
    assert tab.js("document.getElementById('explain-zombie-commit').checkVisibility()")


def test_all_controls_are_reached_by_tab(tab: Tab, page: Path) -> None:
    """Every button, choice and row of the timeline has the focus, visibly, while Tab goes through the page."""
    opened(tab, page)
    controls = "[...document.querySelectorAll('#timeline button, #timeline select, #timeline .row')]"
    outlined = "getComputedStyle(document.activeElement).outlineStyle !== 'none'"
    steps = tab.js(f"{controls}.length") + 20
    for _ in range(steps):
        tab.press("Tab")
        tab.js(f"if ({outlined}) document.activeElement.dataset.reached = 'yes'")
    assert tab.js(f"{controls}.filter(one => !one.dataset.reached).map(one => one.outerHTML.slice(0, 80))") == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "light")])
def test_axe_finds_nothing(tab: Tab, page: Path, width: int, scheme: str) -> None:
    """On wide and narrow screens, light and dark, with an anomaly chosen and everything unfolded."""
    tab.media(prefers_color_scheme=scheme)
    opened(tab, page, width=width)
    tab.js("document.querySelectorAll('details').forEach(one => one.open = true)")
    tab.js("document.querySelector('ol.anomalies button').click()")
    tab.js(axe_source() + "; 0")
    found = tab.js("axe.run().then(found => found.violations.map(one => [one.id, one.nodes.map(node => node.html)]))")
    assert found == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (360, "light")])
def test_a_certificate_is_as_plain(tab: Tab, tmp_path: Path, width: int, scheme: str) -> None:
    """The same of its page: nothing refused, nothing sideways, nothing that axe finds, and what was written is text."""
    tab.media(prefers_color_scheme=scheme)
    write_certificate(hostile_certificate(), tmp_path)
    opened(tab, tmp_path / CERTIFICATE_PAGE, width=width)
    assert (tab.complaints(), tab.js("document.querySelectorAll('img, script').length")) == ([], 0)
    assert "<img src=x onerror=alert(1)>" in tab.js("document.body.innerText")
    inner, wide = tab.js("[document.documentElement.clientWidth, document.documentElement.scrollWidth]")
    tab.js(axe_source() + "; 0")
    found = tab.js("axe.run().then(found => found.violations.map(one => [one.id, one.nodes.map(node => node.html)]))")
    assert (wide <= inner, found) == (True, [])


def hostile_certificate() -> Certificate:
    """Returns one with a trial of each verdict and one that is missing; names, sentences and reasons are hostile."""
    told: dict[str, dict[str, Any]] = {
        "pass": {},
        "fail": {"violations": [{"anomaly": "skipped", "count": 1, "sentence": SENTENCE, "events": []}]},
        "unknown": {"reasons": [HOSTILE]},
    }
    lists = dict.fromkeys(("violations", "tolerated", "not_judged", "faults", "reasons"), ())
    about = {"versions": {}, "run": "runs/one", "replay": f"kafka-trial run {HOSTILE}", "files": {}, "exit": 1}
    trials = [
        CertifiedTrial(**{"scenario": word, "kafka": "4.3.1", "seed": 1, "verdict": word, **lists, **about, **words})
        for word, words in told.items()
    ]
    consumer = {"name": HOSTILE, "claim": {"delivery": "at-least-once"}}
    suites = [*told, "a-suite-with-a-long-name-" * 5]
    tried = {one.cell: one for one in trials}
    return Certificate(consumer, "0.1.0", "digest", suites, [*KNOWN], [1, 2, 3], trials=tried)


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_is_never_wider_than_its_window(tab: Tab, page: Path, width: int) -> None:
    """Nothing has to be scrolled sideways, and the rows fill what there is."""
    opened(tab, page, width=width)
    inner, wide, row = tab.js(
        "[document.documentElement.clientWidth, document.documentElement.scrollWidth,"
        " document.querySelector('.row svg').getBoundingClientRect().width]"
    )
    assert (wide <= inner, row > 0.85 * min(inner, 940)) == (True, True)


def test_without_a_script_there_are_a_table_and_curves(tab: Tab, page: Path) -> None:
    """Where scripts do not run: owners, counts and lag of every partition in words, the curves of the lag, and the
    anomalies, the headline's first."""
    tab.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(page)
        tab.js("document.querySelectorAll('details').forEach(one => one.open = true)")
        shown = tab.js("document.querySelector('main').innerText")
        listed = tab.js("[...document.querySelectorAll('noscript td.name')].map(one => one.textContent)")
        curves = tab.js("[...document.querySelectorAll('noscript svg')].filter(one => one.clientHeight > 0).length")
        controls = tab.js("document.querySelectorAll('#timeline *').length")
    finally:
        tab.ask("Emulation.setScriptExecutionDisabled", value=False)
    assert [one for one in ("t-1", "m2 15.0 to", "peak 40") if one not in shown] == []
    assert (curves, controls, listed) == (2, 0, ["commit-regression", "skipped", "unseen"])


def test_a_million_events_are_shown_in_time(tab: Tab, tmp_path: Path) -> None:
    """Read, written and loaded within seconds; small; and every anomaly has its mark in the row of its partition."""
    folder = judged_folder(tmp_path, events=1_000_000, partitions=6, anomalies=6000)
    slice_rows(folder)  # as `check` leaves it
    report = read_report(folder, with_history=False)
    before = time.process_time()  # how busy the machine is does not count
    text = html_of(report, read_timeline(folder, verdict()))
    made_s = time.process_time() - before
    (tmp_path / "report.html").write_text(text)
    before = time.monotonic()
    opened(tab, tmp_path / "report.html")
    loaded_s = time.monotonic() - before
    assert (len(text.encode()) < 15_000_000, loaded_s < 5, made_s < 10) == (True, True, True), (made_s, loaded_s)
    unmarked = tab.js(
        """(() => {
          const {timeline} = JSON.parse(document.getElementById('timeline-data').textContent);
          const width = Number(document.querySelector('.row svg').getAttribute('width')) - 66;
          const paths = number => [...document.querySelectorAll(`#row-partition-${number} path.anomaly`)];
          const places = path => path.getAttribute('d').match(/(?<=M)\\d+/g).map(Number);
          const marked = timeline.partitions.map((_, number) => new Set(paths(number).flatMap(places)));
          const place = at => 56 + (at - timeline.begin_ms) / (timeline.end_ms - timeline.begin_ms) * width;
          return timeline.anomalies.listed.filter(one => !marked[one[2]].has(Math.round(place(one[3])))).length;
        })()"""
    )
    elements = tab.js("document.querySelectorAll('*').length")
    assert (unmarked, elements < 10_000) == (0, True)


def judged_folder(path: Path, *, events: int, partitions: int, anomalies: int) -> RunFolder:
    """Returns a generated history with its cache and a verdict; nothing is judged, the anomalies are made up."""
    folder = write_history(path / "trial", Shape(events, partitions=partitions))
    folder.write_json("verdict.json", verdict())
    lines = [
        anomaly() | {"topic": "scale", "partition": n % partitions, "events": [f"offsets#{n // 2 + 10}"]}
        for n in range(anomalies)
    ]
    (folder.path / "anomalies.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return folder
