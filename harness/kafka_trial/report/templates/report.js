"use strict";
// Draws the timeline of one trial from the JSON block of the page (report/timeline.py says what stands in it).
// Whatever a consumer wrote is put in as text only. Every row is drawn anew when the view changes, with no more
// elements than it has pixels; everything the pointer can do, the buttons and keys can do too.
(() => {
  const block = document.getElementById("timeline-data");
  if (!block) return;
  const { timeline, advice } = JSON.parse(block.textContent);
  const { anomalies, members, partitions, faults, phases } = timeline;
  const GUTTER = 56, RIGHT = 10, NEAR_PX = 8, PAGE = 12, AXIS = 18, SPAN_MIN_MS = 4, UNFOLDED = 3;
  const WHOLE = [timeline.begin_ms, Math.max(timeline.end_ms, timeline.begin_ms + SPAN_MIN_MS)];
  const WORD = { violation: "violation", undecided: "undecided", tolerated: "tolerated", ground: "not its fault" };
  let view = [...WHOLE], chosen = null, cursor_ms = null, list = [], page = 0;

  // ---- words ----
  const seconds = (ms, digits = 3) => `${(ms / 1000).toFixed(digits)} s`;
  const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
  const member = (number) => members[number] ?? "nobody known";
  const topics = new Set(partitions.map((one) => one.topic));
  const place = (one) => `partition ${one.partition}${topics.size > 1 ? ` of ${one.topic}` : ""}`;
  const during = (ms) => {
    const names = faults.filter((one) => one[2] <= ms && ms <= one[3]).map((one) => `${one[0]} on ${one[1]}`);
    return names.length ? ` During the fault ${names.join(" and ")}.` : "";
  };
  const from_to = (begin, end) => (end - begin < 1 ? `at ${seconds(begin)}` : `from ${seconds(begin)} to ${seconds(end)}`);

  // ---- elements ----
  const make = (name, attributes = {}, text = null) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    return made;
  };
  const draw = (svg, name, attributes, text = null) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    svg.append(made);
    return made;
  };
  const button = (text, act, attributes = {}) => {
    const made = make("button", { type: "button", ...attributes }, text);
    made.addEventListener("click", act);
    return made;
  };
  const selection = (label, choices, act) => {
    const made = make("select");
    choices.forEach(([value, text]) => made.append(make("option", { value }, text)));
    made.addEventListener("change", () => act(made.value));
    const wrapped = make("label", {}, `${label} `);
    wrapped.append(made);
    return wrapped;
  };

  // ---- rows: each has lanes, and each lane events {begin, end, cls, label, tell} or lines over time ----
  const colour = (number) => `member-${number < 0 ? "none" : number % 6}`;
  const event = (begin, end, cls, tell, more = {}) => ({ begin, end, cls, tell, ...more });
  const bands = (one) => {
    let until = -Infinity; // a band that begins before the one before it ends is drawn over its lower half
    return one.owners.map(([who, begin, end]) => {
      const over = begin < until - 1 ? " over" : "";
      until = Math.max(until, end);
      return event(begin, end, `band ${colour(who)}${over}`,
        () => `${place(one)} was owned by ${member(who)} ${from_to(begin, end)}${over ? ", while another member had it too" : ""}.`,
        { label: over ? "" : member(who) });
    });
  };
  const handlers = (one, only = null) => one.handlers.filter((run) => only === null || run[0] === only)
    .map(([who, begin, end, many, low, high]) => event(begin, end, `run ${colour(who)}`, () => many === 1
      ? `${member(who)} handled offset ${low} of ${place(one)} ${from_to(begin, end)}.`
      : `${member(who)} handled ${count(many, "record")} of ${place(one)}, offsets ${low} to ${high}, ${from_to(begin, end)}.`));
  const commits = (one) => one.commits.map(([at, offset, who, many], number) => {
    const fell = number > 0 && offset < one.commits[number - 1][1];
    return event(at, at, fell ? "commit fell" : "commit", () => {
      const more = many > 1 ? `, the last of ${count(many, "commit")} close together` : "";
      const by = who >= 0 ? ` by ${member(who)}` : "";
      return `Committed offset ${offset}${by} took effect at ${seconds(at)}${more}${fell ? "; it was higher before" : ""}.`;
    });
  });
  const found = anomalies.listed.map(([name, weight, where, at, first, proofs, sentence, place_no, who, records]) => ({
    name: anomalies.names[name], weight: anomalies.weights[weight], where, at, first, proofs, sentence,
    place: place_no, who, records, advice: advice[name],
  }));
  const told = (one) => `${one.name} (${WORD[one.weight] ?? one.weight})${one.at === null ? "" : ` at ${seconds(one.at)}`}: ${one.sentence}`;
  const violations_last = (events) => events.sort((a, b) => (a.rank - b.rank) || (a.begin - b.begin));
  const rank = (weight) => ["tolerated", "undecided", "ground", "violation"].indexOf(weight);
  const marks = (where) => violations_last([
    ...found.filter((one) => one.at !== null && (where === null || one.where === where))
      .map((one) => event(one.at, one.at, `anomaly ${one.weight}`, () => told(one), { anomaly: one, rank: rank(one.weight) })),
    ...anomalies.counted.filter((one) => one[3] !== null && (where === null || one[2] === where))
      .map(([name, weight, , at, many]) => event(at, at, `anomaly ${anomalies.weights[weight]}`,
        () => `${anomalies.names[name]}: ${many} more around ${seconds(at)}; see anomalies.jsonl.`, { rank: rank(anomalies.weights[weight]) })),
  ]);
  const lane = (name, kind, height, events) => ({ name, kind, height, events });
  const lag_lanes = ({ lag }) => {
    const lines = (name, unit, committed, handled, claimed = []) => ({
      name, unit, kind: "lines", height: 54, at: lag.at_ms, events: [],
      lines: [["committed", committed], ["handled", handled], ["claimed", claimed]].filter((one) => one[1].length),
    });
    const in_s = (ages) => ages.map((ms) => ms / 1000);
    const limit = timeline.age_limit_ms === null ? [] : lag.at_ms.map(() => timeline.age_limit_ms);
    return [
      lines("lag, records", "records", lag.committed, lag.handled),
      lines("lag, age", "s", in_s(lag.committed_age_ms), in_s(lag.handled_age_ms), in_s(limit)),
    ].filter((one) => one.lines.length);
  };
  const lives = (who) => timeline.incarnations.filter((life) => life[0] === who).map(([, number, begin, end, how]) =>
    event(begin, end, `band ${colour(who)}`, () => `${member(who)}-${number} ran ${from_to(begin, end)}${how ? `, and ended with ${how}` : ""}.`,
      { label: `${member(who)}-${number}` }));
  const rows = [
    {
      id: "trial", title: "All partitions", lanes: [
        lane("phases", "spans", 16, phases.map(([name, at], number) => event(at, phases[number + 1]?.[1] ?? WHOLE[1], "band phase",
          () => `The phase ${name} began at ${seconds(at)}.`, { label: name }))),
        lane("faults", "spans", 16, faults.map(([name, target, begin, end]) => event(begin, end, "band fault-band",
          () => `The fault ${name} on ${target} was in force ${from_to(begin, end)}.`, { label: name }))),
        lane("anomalies", "ticks", 16, marks(null)),
      ],
    },
    ...partitions.map((one, number) => ({
      id: `partition-${number}`, title: place(one), partition: number, lanes: [
        lane("owner", "spans", 16, bands(one)), lane("handled", "spans", 10, handlers(one)),
        lane("commits", "ticks", 12, commits(one)), lane("anomalies", "ticks", 14, marks(number)), ...lag_lanes(one),
      ],
    })),
    ...members.map((name, number) => ({
      id: `member-${number}`, title: `member ${name}`, member: number, lanes: [
        lane("running", "spans", 16, lives(number)),
        lane("owns", "owns", 14, partitions.flatMap((one) => bands({ ...one, owners: one.owners.filter((band) => band[0] === number) }))),
        lane("handled", "spans", 10, partitions.flatMap((one) => handlers(one, number)).sort((a, b) => a.begin - b.begin)),
      ],
    })),
  ];
  const FOLDED = new Set(["owner", "running", "anomalies"]); // the lanes of a row that is folded
  for (const row of rows) {
    row.unfolded = row.lanes.filter((one) => one.kind === "lines" || one.events.length || one.name === "anomalies");
    row.violations = row.partition === undefined ? 0 : found.filter((one) => one.where === row.partition && one.weight === "violation").length;
    row.label = row.title + (row.violations ? `, ${count(row.violations, "violation")}` : "");
  }
  const worst = new Set(rows.filter((row) => row.violations).sort((a, b) => b.violations - a.violations).slice(0, UNFOLDED));
  if (found[0]?.where != null) worst.add(rows.find((row) => row.partition === found[0].where)); // the headline's
  for (const row of rows) set_lanes(row, row.id !== "trial" && !worst.has(row));
  function set_lanes(row, folded) {
    row.folded = folded;
    row.lanes = folded ? row.unfolded.filter((one) => FOLDED.has(one.name)) : row.unfolded;
    row.steps = row.lanes.flatMap((one) => one.events.map((step) => ({ step, lane: one }))).sort((a, b) => a.step.begin - b.step.begin);
    row.at = -1;
  }
  function fold(row, folded) {
    set_lanes(row, folded);
    row.toggle.setAttribute("aria-expanded", String(!folded));
    row.box.setAttribute("aria-label", `${row.title}: ${row.lanes.map((one) => one.name).join(", ")}`);
  }
  function fold_all(folded) {
    for (const row of rows) if (row.toggle) fold(row, folded);
    redraw();
  }

  // ---- the page's part ----
  const root = document.getElementById("timeline");
  const detail = make("p", { class: "detail", role: "status" }, "Hover over an item, or select it with the arrow keys, for details.");
  const proof = make("div", { class: "proof", tabindex: "0", role: "region", "aria-label": "the chosen anomaly" });
  proof.hidden = true;
  const shown_from_to = make("span", { class: "soft", id: "timeline-view" });
  const rows_box = make("div", { class: "rows" });
  const tools = make("div", { class: "tools", role: "group", "aria-label": "view of the timeline" });
  tools.append(
    button("Zoom in", () => zoom(0.5)), button("Zoom out", () => zoom(2)), button("Earlier", () => shift(-0.5)),
    button("Later", () => shift(0.5)), button("Whole trial", () => look(...WHOLE)),
    button("Unfold all", () => fold_all(false)), button("Fold all", () => fold_all(true)),
    ...(found.length ? [button("Previous anomaly", () => step_anomaly(-1)), button("Next anomaly", () => step_anomaly(1))] : []),
    selection("Show", [["", "everything"], ["partition", "partitions"], ["member", "members"], ...rows.map((row) => [row.id, row.title])], show),
    shown_from_to,
  );
  const list_box = make("ol", { class: "anomalies" }), pager = make("div", { class: "tools", role: "group", "aria-label": "pages of the list" });
  for (const row of rows) {
    row.box = make("div", {
      class: "row", id: `row-${row.id}`, role: "group", tabindex: "0", "aria-describedby": "timeline-keys",
      "aria-label": `${row.title}: ${row.lanes.map((one) => one.name).join(", ")}`,
    });
    row.svg = draw(row.box, "svg", { "aria-hidden": "true" });
    const head = make("h3", {}, row.id === "trial" ? row.title : null);
    if (row.id !== "trial") {
      row.toggle = button(row.label, () => { fold(row, !row.folded); redraw(); }, { class: "fold", "aria-expanded": String(!row.folded) });
      head.append(row.toggle);
    }
    row.box.prepend(head);
    listen(row);
    rows_box.append(row.box);
  }
  const legend = make("p", { class: "legend" });
  members.forEach((name, number) => legend.append(make("span", { class: `swatch ${colour(number)}` }, name)));
  for (const [cls, text] of [["fault", "fault in force"], ["violation", "violation"], ["undecided", "undecided"], ["tolerated", "tolerated"]])
    legend.append(make("span", { class: `swatch ${cls}` }, text));
  const sticky = make("div", { class: "sticky card" });
  sticky.append(detail, proof);
  root.append(tools, legend, rows_box, sticky);
  const filters = { name: "", place: "", who: "", record: "", text: "" };
  const matching = make("p", { class: "soft", role: "status" });
  if (found.length) {
    const choices = (label, key, names, of) => {
      const used = names.map((name, number) => [String(number), name, found.filter((one) => of(one, number)).length]).filter((one) => one[2]);
      return selection(label, [["", "all"], ...used.map(([value, name, many]) => [value, `${name} (${many})`])], (value) => filter(key, value));
    };
    const typed = (label, key, attributes) => {
      const box = make("input", attributes), wrapped = make("label", {}, `${label} `);
      box.addEventListener("input", () => filter(key, box.value));
      wrapped.append(box);
      return wrapped;
    };
    const head = make("div", { class: "tools", role: "search", "aria-label": "filters of the list" });
    const where = topics.size > 1 ? anomalies.where : anomalies.where.map((name) => name.replace(/ of .*/, ""));
    head.append(
      choices("Kind", "name", anomalies.names, (one, number) => one.name === anomalies.names[number]),
      choices("Where", "place", where, (one, number) => one.place === number),
      choices("Member", "who", anomalies.members, (one, number) => one.who.includes(number)),
      typed("Record", "record", { type: "number", min: "0", size: "8", placeholder: "offset" }),
      typed("Search", "text", { type: "search", size: "16" }),
    );
    root.append(make("h3", { id: "anomalies" }, `Anomalies (${found.length})`), head, matching, list_box, pager);
  }
  root.hidden = document.getElementById("keys").hidden = false;

  // ---- drawing ----
  const scale = (width) => {
    const inner = Math.max(50, width - GUTTER - RIGHT);
    return { x: (ms) => GUTTER + ((ms - view[0]) / (view[1] - view[0])) * inner, ms: (x) => view[0] + ((x - GUTTER) / inner) * (view[1] - view[0]), inner };
  };
  const nice = (rough) => {
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  };
  function redraw() {
    const width = Math.floor(rows_box.clientWidth - 2);
    for (const row of rows) if (!row.box.hidden) draw_row(row, width);
    shown_from_to.textContent = `${seconds(view[0], 2)} to ${seconds(view[1], 2)}`;
  }
  function draw_row(row, width) {
    const { svg } = row, { x, inner } = scale(width);
    const edge = (ms) => Math.min(Math.max(x(ms), GUTTER), GUTTER + inner);
    const axis = row.folded ? 4 : AXIS; // without its labels
    const height = row.lanes.reduce((sum, one) => sum + one.height + 6, 0) + axis;
    svg.replaceChildren();
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    const area = (begin, end, cls) => {
      if (end < view[0] || begin > view[1]) return;
      draw(svg, "rect", { class: cls, x: edge(begin), y: 0, width: Math.max(edge(end) - edge(begin), 2), height: height - axis });
    };
    for (const [, , begin, end] of faults) area(begin, end, "fault");
    if (chosen && chosen.at !== null && (row.id === "trial" || row.partition === chosen.where)) area(chosen.first, chosen.at, "chosen");
    draw_axis(svg, x, width, height, axis);
    let top = 2;
    for (const one of row.lanes) {
      one.top = top;
      if (one.kind !== "lines") draw(svg, "text", { class: "lane-name", x: 0, y: top + one.height - 3 }, one.name.slice(0, 9));
      if (one.kind === "spans") draw_spans(svg, one, edge);
      else if (one.kind === "ticks") draw_ticks(svg, one, x);
      else if (one.kind === "owns") draw_owns(svg, one, edge);
      else draw_lines(svg, one, x, edge, inner);
      top += one.height + 6;
    }
    if (chosen && row.partition === chosen.where) for (const number of chosen.proofs) {
      const at = anomalies.proofs[number][1];
      if (at >= view[0] && at <= view[1]) draw(svg, "path", { class: "proof-mark", d: `M${x(at)},0l4,5l-4,5l-4,-5z` });
    }
    if (cursor_ms !== null && cursor_ms >= view[0] && cursor_ms <= view[1])
      draw(svg, "line", { class: "cursor", x1: x(cursor_ms), x2: x(cursor_ms), y1: 0, y2: height - axis });
  }
  function draw_axis(svg, x, width, height, axis) {
    const step = nice(((view[1] - view[0]) / Math.max(2, width / 90)) || 1), digits = Math.max(0, Math.ceil(-Math.log10(step / 1000)));
    for (let at = Math.ceil(view[0] / step) * step; at <= view[1]; at += step) {
      draw(svg, "line", { class: "grid", x1: x(at), x2: x(at), y1: 0, y2: height - axis + 3 });
      if (axis === AXIS) draw(svg, "text", { class: "tick", x: x(at), y: height - 4, "text-anchor": x(at) > width - 30 ? "end" : "middle" }, `${(at / 1000).toFixed(digits)} s`);
    }
  }
  const inside = (one) => one.end >= view[0] && one.begin <= view[1];
  function draw_spans(svg, one, edge) { // one path a class: what falls into a pixel that is drawn already adds nothing
    const paths = new Map();
    let free = -1;
    for (const span of one.events) {
      if (!inside(span)) continue;
      const left = edge(span.begin), right = Math.max(edge(span.end), left + 1), path = paths.get(span.cls) ?? { d: [], until: -1 };
      if (right > path.until + 0.5) {
        const over = span.cls.endsWith(" over") ? one.height / 2 : 0;
        path.d.push(`M${left.toFixed(1)},${one.top + over}H${right.toFixed(1)}V${one.top + one.height}H${left.toFixed(1)}z`);
        path.until = right;
        paths.set(span.cls, path);
      }
      if (span.label && left >= free && right - left > span.label.length * 6.5 + 6) {
        span.placed = left;
        free = right;
      } else span.placed = null;
    }
    for (const [cls, { d }] of paths) draw(svg, "path", { class: cls, d: d.join("") });
    for (const span of one.events) if (span.placed != null && inside(span)) draw(svg, "text", { class: "band-name", x: span.placed + 4, y: one.top + one.height - 4 }, span.label);
  }
  function draw_ticks(svg, one, x) {
    const paths = new Map();
    for (const tick of one.events) {
      if (!inside(tick)) continue;
      const path = paths.get(tick.cls) ?? new Set();
      path.add(Math.round(x(tick.begin)));
      paths.set(tick.cls, path);
    }
    for (const [cls, places] of paths) draw(svg, "path", { class: cls, d: [...places].map((at) => `M${at},${one.top}v${one.height}`).join("") });
  }
  function draw_owns(svg, one, edge) { // how many partitions it owned: a step for every band that begins or ends
    const changes = one.events.flatMap((band) => [[band.begin, 1], [band.end, -1]]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    let now = 0, peak = 1;
    const values = changes.map(([at, by]) => (peak = Math.max(peak, now += by), [at, now]));
    const y = (value) => (one.top + one.height - (value / peak) * one.height).toFixed(1);
    draw(svg, "path", { class: "line owns-line", d: `M${edge(view[0])},${y(values.filter((pair) => pair[0] <= view[0]).at(-1)?.[1] ?? 0)}`
      + values.filter(([at]) => at > view[0] && at <= view[1]).map(([at, value]) => `H${edge(at).toFixed(1)}V${y(value)}`).join("") + `H${edge(view[1])}` });
    draw(svg, "text", { class: "value", x: GUTTER + 2, y: one.top + 8 }, `max ${peak}`);
  }
  function draw_lines(svg, one, x, edge, inner) {
    const peak = nice(Math.max(1, ...one.lines.flatMap((line) => line[1]))), bottom = one.top + one.height;
    const y = (value) => bottom - (value / peak) * (one.height - 10);
    for (const value of [0, peak / 2, peak]) {
      draw(svg, "line", { class: "grid", x1: GUTTER, x2: GUTTER + inner, y1: y(value), y2: y(value) });
      draw(svg, "text", { class: "tick", x: GUTTER - 4, y: y(value) + 3, "text-anchor": "end" }, value >= 10000 ? `${value / 1000}k` : String(value));
    }
    draw(svg, "text", { class: "value", x: GUTTER + 4, y: one.top + 8 }, one.name + (one.unit === "s" ? " in s" : ""));
    for (const [cls, values] of one.lines) {
      let d = "";
      one.at.forEach((at, number) => {
        const next = one.at[number + 1] ?? at;
        if (next < view[0] || at > view[1]) return;
        d += `${d ? "H" : "M"}${edge(at).toFixed(1)}${d ? "V" : ","}${y(values[number]).toFixed(1)}`;
      });
      draw(svg, "path", { class: `line ${cls}`, d });
    }
  }

  // ---- the view ----
  function look(begin, end) {
    const span = Math.min(Math.max(end - begin, SPAN_MIN_MS), WHOLE[1] - WHOLE[0]);
    const from = Math.min(Math.max(begin, WHOLE[0]), WHOLE[1] - span);
    view = [from, from + span];
    redraw();
  }
  function zoom(factor) {
    const seen = cursor_ms !== null && cursor_ms >= view[0] && cursor_ms <= view[1];
    const middle = seen ? cursor_ms : (view[0] + view[1]) / 2;
    look(middle - (middle - view[0]) * factor, middle + (view[1] - middle) * factor);
  }
  function shift(part) {
    const by = (view[1] - view[0]) * part;
    look(view[0] + by, view[1] + by);
  }
  function show(which) {
    for (const row of rows) row.box.hidden = !(which === "" || row.id === which || (which in row && row[which] !== undefined));
    redraw();
  }

  // ---- what the pointer or the keys are at ----
  function at_point(row, px, py, width) {
    const { x, ms } = scale(width), at = ms(px);
    const one = row.lanes.find((other) => py >= other.top - 3 && py <= other.top + other.height + 3);
    if (!one) return { at, text: "" };
    if (one.kind === "lines") return { at, text: value_at(one, at) };
    let best = null, least = NEAR_PX;
    for (const other of one.events) {
      const away = Math.max(x(other.begin) - px, px - x(other.end), 0);
      if (away <= least) [best, least] = [other, away]; // of several the one that is drawn last
    }
    return { at, text: best ? best.tell() : "", event: best };
  }
  function value_at(one, at) {
    let number = one.at.findLastIndex((other) => other <= at);
    number = Math.max(number, 0);
    const what = { committed: one.unit === "s" ? "oldest record after the committed offset" : "after the committed offset", handled: one.unit === "s" ? "oldest record not yet handled" : "not yet handled", claimed: "claimed at most" };
    return `At ${seconds(one.at[number])}: ` + one.lines.map(([cls, values]) => `${what[cls]} ${one.unit === "s" ? `${values[number].toFixed(1)} s old` : count(values[number], "record")}`).join(", ") + ".";
  }
  function tell(at, text) {
    cursor_ms = at;
    detail.textContent = (text || `${seconds(at)}.`) + during(at);
  }
  function listen(row) {
    let from = null, box = null;
    const point = (pointer) => {
      const frame = row.svg.getBoundingClientRect();
      return [pointer.clientX - frame.left, pointer.clientY - frame.top, frame.width];
    };
    row.svg.addEventListener("pointerdown", (pointer) => {
      if (pointer.button !== 0 || point(pointer)[0] < GUTTER) return;
      from = point(pointer)[0];
      row.svg.setPointerCapture(pointer.pointerId);
    });
    row.svg.addEventListener("pointermove", (pointer) => {
      const [px, py, width] = point(pointer);
      if (px < GUTTER) return;
      const { at, text } = at_point(row, px, py, width);
      tell(at, text);
      if (from !== null) {
        box ??= draw(row.svg, "rect", { class: "drag", y: 0, height: row.svg.getAttribute("height") });
        box.setAttribute("x", Math.min(from, px));
        box.setAttribute("width", Math.abs(px - from));
      }
    });
    row.svg.addEventListener("pointerup", (pointer) => {
      const [px, py, width] = point(pointer), { ms } = scale(width), begun = from;
      [from, box] = [null, null];
      if (begun !== null && Math.abs(px - begun) > 5) return look(ms(Math.min(begun, px)), ms(Math.max(begun, px)));
      const { event: hit } = at_point(row, px, py, width);
      if (hit?.anomaly) choose(hit.anomaly, { move: false });
      return redraw();
    });
    row.svg.addEventListener("pointercancel", () => ([from, box] = [null, null]));
    row.box.addEventListener("keydown", (key) => {
      if (key.target !== row.box || key.ctrlKey || key.altKey || key.metaKey) return;
      const act = {
        ArrowRight: () => step(row, row.at + 1), ArrowLeft: () => step(row, row.at - 1), Home: () => step(row, 0),
        End: () => step(row, row.steps.length - 1), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
        0: () => look(...WHOLE), PageUp: () => shift(-0.5), PageDown: () => shift(0.5),
        Enter: () => row.steps[row.at]?.step.anomaly && choose(row.steps[row.at].step.anomaly, { move: false }),
        Escape: () => chosen?.entry?.focus(),
      }[key.key];
      if (!act) return;
      key.preventDefault();
      act();
    });
  }
  function step(row, number) {
    if (!row.steps.length) return;
    row.at = Math.min(Math.max(number, 0), row.steps.length - 1);
    const { step: now, lane: one } = row.steps[row.at];
    tell(now.begin, now.tell());
    if (now.begin < view[0] || now.begin > view[1]) return look(now.begin - (view[1] - view[0]) / 2, now.begin + (view[1] - view[0]) / 2);
    one.current = now;
    return redraw();
  }

  // ---- anomalies ----
  function filter(key, value) { // the list is in the order in which the page tells anomalies: the headline's first
    filters[key] = value;
    const { name, place: where, who, record, text } = filters, words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const spoken = (one) => `${told(one)} ${one.proofs.map((number) => anomalies.proofs[number][0]).join(" ")}`.toLowerCase();
    list = found.filter((one) => (name === "" || one.name === anomalies.names[Number(name)])
      && (where === "" || one.place === Number(where)) && (who === "" || one.who.includes(Number(who)))
      && (record === "" || one.records.some(([first, last]) => first <= Number(record) && Number(record) <= last))
      && (!words.length || words.every((word) => spoken(one).includes(word))));
    matching.textContent = list.length === found.length ? "The headline's first; then by kind." : `${list.length} of ${found.length} match.`;
    show_page(0);
  }
  function show_page(number) {
    page = Math.min(Math.max(number, 0), Math.max(0, Math.ceil(list.length / PAGE) - 1));
    const first = page * PAGE;
    list_box.setAttribute("start", first + 1);
    list_box.replaceChildren(...list.slice(first, first + PAGE).map((one) => {
      const entry = make("li");
      one.entry = button(told(one), () => choose(one), { class: one.weight, "aria-pressed": String(one === chosen) });
      entry.append(one.entry);
      return entry;
    }));
    pager.replaceChildren();
    if (list.length > PAGE) pager.append(button("Previous page", () => show_page(page - 1)), button("Next page", () => show_page(page + 1)),
      make("span", { class: "soft" }, `${first + 1} to ${Math.min(first + PAGE, list.length)} of ${list.length}`));
  }
  function choose(one, { move = true } = {}) {
    chosen?.entry?.setAttribute("aria-pressed", "false");
    chosen = one;
    one.entry?.setAttribute("aria-pressed", "true");
    detail.textContent = told(one) + (one.at === null ? "" : during(one.at));
    proof.replaceChildren();
    const help = make("p");
    if (one.advice) for (const [word, text] of [["Usually: ", one.advice[0]], ["Change: ", one.advice[1]], ...one.advice.slice(2)]) help.append(make("strong", {}, word), text, make("br"));
    const events = make("ul");
    for (const [name, at, text] of one.proofs.map((number) => anomalies.proofs[number])) {
      const entry = make("li");
      entry.append(make("code", {}, name), ` at ${seconds(at)}${text ? `: ${text}` : "; kafka-trial show prints it"}`);
      events.append(entry);
    }
    proof.append(help, make("p", {}, one.proofs.length ? "Proved by" : "No single event proves it."), events,
      button("Close", () => { proof.hidden = true; chosen.entry?.focus(); chosen = null; redraw(); }));
    proof.hidden = false;
    if (one.at === null) return redraw();
    cursor_ms = one.at;
    if (!move) return redraw();
    const row = rows.find((other) => other.partition !== undefined && other.partition === one.where) ?? rows[0];
    if (row.box.hidden) show("");
    if (row.folded) fold(row, false);
    const span = Math.max(one.at - one.first, 500);
    look(one.first - span * 0.6, one.at + span * 0.6);
    row.at = row.steps.findIndex((other) => other.step.anomaly === one);
    row.box.scrollIntoView({ block: "start" }); // what is told of it stands at the bottom
    return row.box.focus({ preventScroll: true });
  }
  function step_anomaly(by) {
    if (!list.length) return;
    const now = list.indexOf(chosen), next = now < 0 ? 0 : (now + by + list.length) % list.length;
    show_page(Math.floor(next / PAGE));
    choose(list[next], { move: false });
    const one = list[next], span = Math.max(one.at - one.first, 500);
    if (one.at !== null) look(one.first - span * 0.6, one.at + span * 0.6);
  }

  filter("text", "");
  new ResizeObserver(redraw).observe(rows_box);
})();
