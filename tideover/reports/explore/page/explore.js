// The page of `tideover explore`: sliders, and what becomes of two strategies when one moves. No framework, and
// nothing from a network. `mount(element, source)` builds it; a source answers "describe", "answer", "picture":
// from the server, from runs inside of an exported page, or from a Jupyter kernel.

const SVG = "http://www.w3.org/2000/svg";
const SIDES = ["first", "second"];
const SPIN_MS = 200; // only what takes longer is announced
const SETTLE_MS = 40; // a slider on the move asks once
const WIDTH = 560, LEFT = 52, RIGHT = 12;
const ORDER = ["moment", "timeout_phase", "message_timeout", "timeout_buckets", "checkpoint_interval",
  "trigger_interval", "batch_interval", "commit_interval", "k", "rate", "failure", "detection", "restart"];

// -- elements ---------------------------------------------------------------------------------------------------

function made(space, tag, attributes, children) {
  const element = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  // Jupyter takes arrows and the space bar for itself, unless the element in focus says this.
  if (["button", "input", "select"].includes(tag)) element.setAttribute("data-lm-suppress-shortcuts", "");
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}
const h = (tag, attributes, ...children) => made(null, tag, attributes, children);
const s = (tag, attributes, ...children) => made(SVG, tag, attributes, children);

const number = (value, digits = 3) => value === null || value === undefined ? "–"
  : Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(digits)));

function ticks(low, high, most) {
  const rough = (high - low || 1) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-9; at += step) found.push(Number(at.toPrecision(9)));
  return found;
}

function scale(low, high, from, to) {
  const length = high - low || 1;
  return (value) => from + ((value - low) / length) * (to - from);
}

let hatches = 0;
function hatch(colour, kind) {
  const id = `tideover-hatch-${++hatches}`;
  const inside = kind === "lines" ? [s("path", { d: "M-1 5 L5 -1 M-1 9 L9 -1", stroke: "var(--ink)", "stroke-width": 0.8 })]
    : [s("circle", { cx: 2, cy: 2, r: 0.8, fill: "var(--ink)" })];
  return [`url(#${id})`, s("pattern", { id, width: kind === "lines" ? 8 : 4, height: kind === "lines" ? 8 : 4, patternUnits: "userSpaceOnUse" },
    s("rect", { width: 8, height: 8, fill: colour }), ...inside)];
}

const swatch = (fill, defs) => s("svg", { viewBox: "0 0 24 12", "aria-hidden": true }, defs ? s("defs", {}, defs) : null,
  s("rect", { width: 24, height: 12, fill, stroke: "var(--muted)", "stroke-width": 0.5 }));
const dash = (colour, dashes) => s("svg", { viewBox: "0 0 24 12", "aria-hidden": true },
  s("line", { x1: 0, x2: 24, y1: 6, y2: 6, stroke: colour, "stroke-width": 2, "stroke-dasharray": dashes }));
const legend = (...entries) => h("ul", { class: "legend" }, entries.map(([mark, words]) => h("li", {}, mark, words)));

function axis(x, low, high, y, label) {
  return s("g", {}, s("line", { x1: x(low), x2: x(high), y1: y, y2: y, stroke: "var(--muted)" }),
    ticks(low, high, 7).map((at) => s("text", { x: x(at), y: y + 15, "text-anchor": "middle" }, number(at, 6))),
    label ? s("text", { x: x(high), y: y + 30, "text-anchor": "end" }, label) : null);
}

function figure(title, caption, ...inside) {
  return h("figure", {}, h("h3", {}, title), ...inside, h("figcaption", {}, caption));
}

// -- figures ----------------------------------------------------------------------------------------------------

function rootsFigure(roots, failure) {
  const low = roots.t_s[0], high = roots.t_s.at(-1), x = scale(low, high, LEFT, WIDTH - RIGHT);
  const rows = roots.rows, first = rows[0].root, last = rows.at(-1).root;
  const top = 6, tall = 190, strip = 34, gap = 22;
  const y = scale(last + 1, first - 1, top, top + tall), thick = Math.max(1, tall / Math.max(1, rows.length) + 0.3);
  const height = top + tall + roots.buckets.length * (strip + gap) + 40;
  const [lost, lostDefs] = hatch("var(--lost)", "lines"), [given, givenDefs] = hatch("var(--given)", "dots");
  const span = (row, from, to, fill) => to === null || to <= from ? null
    : s("rect", { x: x(from), width: x(to) - x(from), y: y(row.root) - thick / 2, height: thick, fill });
  const picture = s("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", class: "roots", "aria-label": rootsInWords(roots) },
    s("defs", {}, lostDefs, givenDefs),
    rows.map((row) => [span(row, row.emitted, row.lost, "var(--waits)"), span(row, row.lost, row.given_up, lost),
      span(row, row.given_up, row.again ?? high, given)]),
    s("text", { x: 4, y: top + 12 }, "root"), ticks(first, last, 3).map((at) => s("text", { x: LEFT - 6, y: y(at) + 4, "text-anchor": "end" }, at)));
  const most = Math.max(1, ...roots.buckets.flatMap((one) => one.waits.map((n, i) => n + one.lost[i])));
  roots.buckets.forEach((bucket, place) => {
    const base = top + tall + (place + 1) * (strip + gap), up = scale(0, most, base, base - strip);
    const area = (values, under, fill) => s("path", { fill, d: `M${roots.t_s.map((t, i) => `${x(t)} ${up(values[i] + under[i])}`).join(" L")} L${
      roots.t_s.map((t, i) => `${x(t)} ${up(under[i])}`).reverse().join(" L")} Z` });
    const name = place === 0 ? "newest bucket" : place === roots.buckets.length - 1 ? "oldest bucket: given up at the next rotation" : `bucket ${place + 1}`;
    picture.append(area(bucket.lost, bucket.lost.map(() => 0), lost), area(bucket.waits, bucket.lost, "var(--waits)"),
      s("line", { x1: x(low), x2: x(high), y1: base, y2: base, stroke: "var(--muted)" }),
      s("text", { x: LEFT, y: base - strip - 5 }, name), s("text", { x: LEFT - 6, y: base - strip + 8, "text-anchor": "end" }, most));
  });
  const bottom = height - 38;
  for (const at of roots.rotations) if (at > low && at < high)
    picture.append(s("line", { x1: x(at), x2: x(at), y1: top, y2: bottom, stroke: "var(--ink)", "stroke-dasharray": "5 4", class: "rotation" }));
  if (failure) picture.append(s("line", { x1: x(failure.at_s), x2: x(failure.at_s), y1: top, y2: bottom, stroke: "var(--failure)", "stroke-width": 2.5 }));
  picture.append(axis(x, low, high, bottom, "time, s"));
  const [lostKey, lostKeyDefs] = hatch("var(--lost)", "lines"), [givenKey, givenKeyDefs] = hatch("var(--given)", "dots");
  return figure("What became of each lost root, and where it waited", `${rootsInWords(roots)} Look at the rotations: a lost root waits in the newest bucket `
    + "for one, in the oldest for the next, and only then comes again, one at a time.",
    picture, legend([swatch("var(--waits)"), "waits for its ack"], [swatch(lostKey, lostKeyDefs), "lost, and the spout does not know"],
      [swatch(givenKey, givenKeyDefs), "given up, waits to be sent again"], [dash("var(--ink)", "5 4"), "rotation"], [dash("var(--failure)"), "failure"]));
}

function rootsInWords(roots) {
  const batches = roots.batches.map((batch) => `${batch.roots} at ${number(batch.given_up, 5)} s`);
  return `${roots.count} roots time out: ${batches.slice(0, 6).join(", ")}${batches.length > 6 ? ", …" : ""}.`;
}

function stagesFigure(answer, longest) {
  const total = answer.stages.reduce((sum, stage) => sum + stage.s, 0);
  const words = answer.stages.length ? `${answer.stages.map((stage) => `${stage.label} ${number(stage.s)} s`).join(", then ")}.`
    : answer.failure ? "No stage takes any time." : "Nothing fails.";
  const x = scale(0, longest || 1, 0, WIDTH);
  let at = 0;
  const bars = answer.stages.map((stage) => {
    const begin = at;
    at += stage.s;
    return s("rect", { x: x(begin), width: Math.max(1, x(at) - x(begin)), y: 0, height: 26, fill: stage.colour, stroke: "var(--muted)", "stroke-width": 0.8 },
      s("title", {}, `${stage.label}: ${number(stage.s)} s`));
  });
  return figure("The recovery, stage by stage", total ? `${words} Both strategies are drawn on the same scale.` : words,
    s("svg", { viewBox: `0 0 ${WIDTH} 46`, role: "img", "aria-label": `Stages: ${words}` }, bars, axis(x, 0, longest || 1, 28)),
    legend(...answer.stages.map((stage) => [swatch(stage.colour), `${stage.label}, ${number(stage.s)} s`])));
}

const PANELS = [["throughput", "throughput, tuples/s"], ["backlog", "backlog, tuples"], ["latency_ms", "latency, ms (mean of each second)"]];

function seriesFigure(answer, span, most) {
  const [low, high] = span, x = scale(low, high, LEFT, WIDTH - RIGHT), tall = 74, gap = 24;
  const height = PANELS.length * (tall + gap) + 34;
  const t = answer.series.t_s, inside = t.map((_, i) => i).filter((i) => t[i] >= low && t[i] <= high);
  const peaks = PANELS.map(([key]) => Math.max(0, ...inside.map((i) => answer.series[key][i] ?? 0)));
  const words = `Peaks from ${number(low, 4)} to ${number(high, 4)} s: ${PANELS.map(([, name], i) => `${name.split(",")[0]} ${number(peaks[i])}${i === 2 ? " ms" : ""}`).join(", ")}.`;
  const picture = s("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", class: "series", "aria-label": words });
  PANELS.forEach(([key, name], place) => {
    const base = (place + 1) * (tall + gap), top = base - tall, y = scale(0, most[key] || 1, base, top);
    const line = (values, look) => {
      let d = "", open = false;
      for (const i of inside) {
        const value = values[i];
        if (value === null) { open = false; continue; }
        d += `${open ? "L" : "M"}${x(t[i]).toFixed(1)} ${y(value).toFixed(1)}`;
        if (!open) d += `L${x(t[i]).toFixed(1)} ${y(value).toFixed(1)}`;
        open = true;
      }
      return s("path", { d, fill: "none", "stroke-width": 1.8, "stroke-linecap": "round", ...look });
    };
    picture.append(ticksOf(most[key] || 1, y), s("text", { x: LEFT, y: top - 6 }, name));
    if (key === "backlog") picture.append(line(answer.series.without, { stroke: "var(--muted)", "stroke-dasharray": "4 3" }));
    picture.append(line(answer.series[key], { stroke: answer.colour, class: key }));
  });
  if (answer.failure) picture.append(s("line", { x1: x(answer.failure.at_s), x2: x(answer.failure.at_s), y1: 8, y2: height - 34, stroke: "var(--failure)", "stroke-width": 2 }));
  const back = answer.failure?.recovered_s;
  if (back !== null && back !== undefined && back <= high)
    picture.append(s("line", { x1: x(back), x2: x(back), y1: 8, y2: height - 34, stroke: "var(--ink)", "stroke-dasharray": "2 3", "stroke-width": 1.5 }));
  picture.append(axis(x, low, high, height - 34, "time, s"));
  return figure("Before and after the failure", `${words} Look for what stays away while the line is at 0, and for what comes at once afterwards.`, picture,
    legend([dash(answer.colour), answer.name], [dash("var(--muted)", "4 3"), "backlog without the failure"], [dash("var(--failure)"), "failure"], [dash("var(--ink)", "2 3"), "recovered"]));
}

function ticksOf(most, y) {
  return s("g", {}, ticks(0, most, 3).map((at) => [
    s("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(at), y2: y(at), stroke: "var(--grid)" }),
    s("text", { x: LEFT - 6, y: y(at) + 4, "text-anchor": "end" }, at >= 10000 ? `${number(at / 1000)}k` : number(at)),
  ]));
}

function hostsFigure(answer) {
  const busiest = answer.hosts.flatMap((host) => host.lines.map((line) => [line.busy, line.name, host.host])).sort((a, b) => b[0] - a[0])[0];
  const words = busiest ? `The busiest is ${busiest[1]} on host ${busiest[2]}: ${number(100 * busiest[0])} %.` : "No task has a host of its own.";
  const boxes = answer.hosts.map((host) => h("div", { class: "host" }, h("b", {}, `host ${host.host}`),
    host.lines.map((line) => h("div", { class: "load" }, h("span", {}, line.name), h("span", {}, `${number(100 * line.busy)} %`),
      h("i", { style: { "--busy": `${Math.min(100, 100 * line.busy)}%` } })))));
  return figure("Hosts and their load", `${words} Part of the time that each was busy. Look for what is full while its neighbours idle.`,
    h("div", { class: "hosts" }, boxes));
}

// The diagram comes as SVG; a veil hides what the cursor has not come to yet.
function diagramFigure(drawn, strategy, ask) {
  const holder = h("div", { class: "wide diagram" });
  holder.append(document.importNode(new DOMParser().parseFromString(drawn.svg, "image/svg+xml").documentElement, true));
  const svg = holder.firstElementChild, box = svg.viewBox.baseVal;
  const veil = s("rect", { y: 34, height: box.height, fill: "var(--paper)", opacity: 0.88, visibility: "hidden" });
  const cursor = s("line", { y1: 34, y2: box.height, stroke: "var(--blue)", "stroke-width": 2, visibility: "hidden", class: "cursor" });
  svg.append(veil, cursor);
  const x = scale(drawn.from_s, drawn.to_s, drawn.left, drawn.right), length = drawn.to_s - drawn.from_s;
  const shown = h("output", {}), slider = h("input", { type: "range", min: 0, max: 200, value: 200, "aria-label": "moment in the diagram", oninput: () => { stop(); show(); } });
  let frame = 0, began = null;
  const button = h("button", { type: "button", "aria-label": "play the diagram", onclick: () => (frame ? stop() : play()) }, "▶");
  function show() {
    const share = slider.value / 200, at = drawn.from_s + share * length, whole = share >= 1;
    veil.setAttribute("x", x(at));
    veil.setAttribute("width", Math.max(0, box.width - x(at)));
    cursor.setAttribute("x1", x(at));
    cursor.setAttribute("x2", x(at));
    for (const one of [veil, cursor]) one.setAttribute("visibility", whole ? "hidden" : "visible");
    if (!whole) holder.scrollLeft = (x(at) / box.width) * svg.clientWidth - holder.clientWidth / 2; // where it is wider than the page
    shown.textContent = `${at.toFixed(length < 1 ? 3 : 2)} s`;
    slider.setAttribute("aria-valuetext", shown.textContent);
  }
  function stop() {
    cancelAnimationFrame(frame);
    frame = 0;
    button.textContent = "▶";
    button.setAttribute("aria-label", "play the diagram");
  }
  function play() {
    if (Number(slider.value) >= 200) slider.value = 0;
    const from = Number(slider.value), jumps = matchMedia("(prefers-reduced-motion: reduce)").matches ? 10 : 1;
    began = null;
    button.textContent = "⏸";
    button.setAttribute("aria-label", "pause the diagram");
    frame = requestAnimationFrame(function step(now) {
      began ??= now;
      slider.value = Math.min(200, from + Math.floor(((now - began) / 8000) * 200 / jumps) * jumps);
      show();
      if (Number(slider.value) >= 200 || !svg.isConnected) stop();
      else frame = requestAnimationFrame(step);
    });
  }
  show();
  const elsewhere = (label, at) => h("button", { type: "button", "aria-label": label, onclick: () => { stop(); ask(Math.max(0, at)); } }, label === "earlier" ? "‹" : "›");
  const move = ask ? [elsewhere("earlier", drawn.from_s - length * 0.6), elsewhere("later", drawn.from_s + length)] : [];
  return figure(`Who sends what to whom: ${strategy}`, `From ${number(drawn.from_s, 5)} to ${number(drawn.to_s, 5)} s. Each line is a task, each arrow a message; `
    + "hold the pointer on one to read what it is. Look at what is lost while a task is down, and what comes again afterwards.",
    h("div", { class: "play" }, button, move[0], slider, move[1], shown), holder);
}

// -- the page ---------------------------------------------------------------------------------------------------

export function mount(root, source, options = {}) {
  root.classList.add("tideover-explore");
  const own = options.address !== false; // whether the address is ours to write
  let state = read(own ? location.hash : options.state ?? ""), about = null, timer = 0, asked = 0;
  const answers = {}, running = {}, sides = {};
  const said = h("p", { class: "said", role: "status" }), controls = h("fieldset", { class: "controls" });
  const title = h("h1", {}, "Explore"), intro = h("p", { class: "intro" });
  const scenario = h("select", { "aria-label": "scenario", onchange: () => { state = { scenario: scenario.value, moved: {} }; write(); describe(); } });
  const link = h("button", { type: "button", onclick: copy }, "Copy link");
  const reset = h("button", { type: "button", onclick: () => { state.moved = {}; write(); build(); ask(); } }, "As in the file");
  root.replaceChildren(h("div", { class: "top" }, title, scenario, own ? link : null, reset), intro, said, controls, h("div", { class: "sides" }, SIDES.map(side)),
    h("div", {}, SIDES.map((name) => sides[name].diagram)));
  if (own) window.addEventListener("hashchange", () => { const next = read(location.hash); if (text(next) !== text(state)) { state = next; describe(); } });

  function side(name) {
    const parts = { select: h("select", { "aria-label": `${name} strategy`, onchange: () => { state[name] = parts.select.value; write(); build(); ask(); } }),
      spinner: h("span", { class: "spinner" }), headline: h("p", { class: "headline", "aria-live": "polite" }), body: h("div", {}), diagram: h("div", { id: `diagram-${name}` }) };
    parts.whole = h("section", { class: "side", id: `side-${name}`, "aria-label": `${name} strategy` },
      h("header", {}, parts.select, parts.spinner), parts.headline, parts.body);
    sides[name] = parts;
    return parts.whole;
  }

  function tell(words, wrong = false) {
    said.textContent = words;
    said.classList.toggle("wrong", wrong);
  }

  async function describe() {
    root.setAttribute("aria-busy", true);
    try {
      about = await source("describe", { scenario: state.scenario ?? options.scenario ?? null });
    } catch (error) {
      tell(error.message, true);
      if (state.scenario) { state = { moved: {} }; about ??= await source("describe", { scenario: null }).catch(() => null); }
      if (!about) { root.removeAttribute("aria-busy"); return; }
    }
    state.scenario = about.scenario;
    checkState();
    title.textContent = about.title;
    intro.textContent = about.description;
    scenario.replaceChildren(...about.scenarios.map((name) => h("option", { value: name, selected: name === about.scenario }, name)));
    build();
    write();
    ask();
  }

  // Of an address: what is unknown is told, and left out.
  function checkState() {
    const kinds = about.strategies.map((one) => one.kind), wrong = [];
    for (const name of SIDES) {
      if (state[name] && !kinds.includes(state[name])) wrong.push(`${name}: ${state[name]} is no strategy that goes with it; there are ${kinds.join(", ")}`);
      if (!kinds.includes(state[name])) state[name] = about[name];
    }
    for (const [name, value] of Object.entries(state.moved)) {
      const control = about.controls.find((one) => one.name === name);
      const found = control?.values.find((one) => String(one) === String(value));
      if (!control) wrong.push(`${name}: there is no such control; there are ${about.controls.map((one) => one.name).join(", ")}`);
      else if (found === undefined) wrong.push(`${name}: ${value} is no position; it has ${control.values.join(", ")}`);
      if (found === undefined) delete state.moved[name];
      else state.moved[name] = found;
    }
    if (wrong.length) tell(`In the address: ${wrong.join("; ")}.`, true);
    else if (!said.classList.contains("wrong")) tell("");
  }

  const concerns = (control, kind) => !control.strategies || control.strategies.includes(kind);
  function at(control) {
    if (control.name in state.moved) return state.moved[control.name];
    const kind = SIDES.map((name) => state[name]).find((one) => one in control.at);
    return control.at[kind] ?? control.at[""] ?? null;
  }

  function build() {
    for (const name of SIDES)
      sides[name].select.replaceChildren(...about.strategies.map((one) => h("option", { value: one.kind, selected: one.kind === state[name] }, one.name)));
    const place = (control) => { const found = ORDER.indexOf(control.name.split(".")[0]); return found < 0 ? ORDER.length : found; };
    const shown = about.controls.filter((control) => SIDES.some((name) => concerns(control, state[name]))).sort((a, b) => place(a) - place(b));
    controls.replaceChildren(...shown.map(row));
  }

  function row(control) {
    const id = `control-${control.name}`, notice = `${id}-notice`;
    const words = (value) => value === null ? "as the file says" : control.words?.[value] ?? `${number(value, 6)}${control.unit === "/s" ? "/s" : control.unit ? ` ${control.unit}` : ""}`;
    const output = h("output", { for: id }, words(at(control)));
    const moved = (value) => {
      output.textContent = words(value);
      input.setAttribute("aria-valuetext", words(value));
      state.moved[control.name] = value;
      write();
      ask();
    };
    const input = control.words && Object.keys(control.words).length
      ? h("select", { id, "aria-describedby": notice, onchange: () => moved(input.value) }, control.values.map((value) => h("option", { value, selected: value === at(control) }, words(value))))
      : h("input", { id, type: "range", min: 0, max: control.values.length - 1, step: 1, "aria-describedby": notice, "aria-valuetext": words(at(control)),
        value: Math.max(0, control.values.indexOf(at(control))), oninput: () => moved(control.values[Number(input.value)]) });
    return h("div", { class: "control" }, h("label", { for: id }, control.label, input.type === "range" ? output : null), input, h("p", { class: "notice", id: notice }, control.notice));
  }

  // An answer is shown if nothing has been asked since: older requests are given up.
  function ask() {
    clearTimeout(timer);
    const mine = ++asked;
    for (const name of SIDES) running[name]?.abort();
    root.setAttribute("aria-busy", true);
    timer = setTimeout(async () => {
      await Promise.all(SIDES.map((name) => one(name, mine)));
      if (mine === asked) root.removeAttribute("aria-busy");
    }, SETTLE_MS);
  }

  function request(name) {
    const kind = state[name], moved = {};
    for (const control of about.controls) if (control.name in state.moved && concerns(control, kind)) moved[control.name] = state.moved[control.name];
    return { scenario: state.scenario, strategy: kind, moved, side: name };
  }

  async function one(name, mine) {
    const parts = sides[name], controller = (running[name] = new AbortController());
    const spin = setTimeout(() => parts.whole.classList.add("waits", "old"), SPIN_MS);
    const done = () => { clearTimeout(spin); parts.whole.classList.remove("waits"); };
    try {
      const began = performance.now(), answer = await source("answer", request(name), controller.signal);
      if (mine !== asked) return;
      if (about.version !== undefined && answer.version !== undefined && answer.version !== about.version) {
        about = await source("describe", { scenario: state.scenario });
        checkState();
        build();
        tell("The file has changed: it was read again.");
      } else if (answers[name]?.error) tell("");
      answers[name] = { ...answer, took: performance.now() - began };
      done();
      parts.whole.classList.remove("old");
      parts.whole.dataset.took = Math.round(answers[name].took);
      for (const each of SIDES) if (answers[each] && !answers[each].error) draw(each);
      await diagram(name, mine, answer.failure?.at_s ?? null, controller.signal);
    } catch (error) {
      if (mine !== asked || error.name === "AbortError") return;
      answers[name] = { error: true };
      parts.whole.classList.add("old");
      tell(error.message, true);
    } finally {
      if (mine === asked) done();
      else clearTimeout(spin);
    }
  }

  async function diagram(name, mine, at, signal) {
    const drawn = await source("picture", { ...request(name), at_s: at }, signal);
    if (mine !== asked) return;
    const strategy = about.strategies.find((each) => each.kind === state[name]).name;
    const later = source.moves === false ? null : (next) => diagram(name, asked, next).catch((error) => tell(error.message, true));
    sides[name].diagram.replaceChildren(drawn ? diagramFigure(drawn, strategy, later) : "");
  }

  function draw(name) {
    const answer = answers[name], parts = sides[name], both = SIDES.map((each) => answers[each]).filter((each) => each && !each.error);
    const longest = Math.max(...both.map((each) => each.stages.reduce((sum, stage) => sum + stage.s, 0)));
    const span = common(both), most = {};
    for (const [key] of PANELS) most[key] = Math.max(...both.map((each) => Math.max(0, ...each.series[key].filter((_, i) => each.series.t_s[i] >= span[0] && each.series.t_s[i] <= span[1]).map((value) => value ?? 0))));
    parts.whole.style.setProperty("--side", answer.colour);
    if (parts.headline.textContent !== answer.headline) parts.headline.textContent = answer.headline;
    const numbers = h("table", {}, h("tbody", {}, answer.numbers.map((one) => h("tr", {}, h("th", { scope: "row" }, one.label), h("td", { class: one.bad ? "bad" : null, "data-value": one.value }, one.text)))));
    parts.body.replaceChildren(numbers, ...(answer.roots ? [rootsFigure(answer.roots, answer.failure)] : []), stagesFigure(answer, longest),
      seriesFigure(answer, span, most), hostsFigure(answer),
      ...(answer.warnings.length ? [h("ul", { class: "remarks" }, answer.warnings.map((words) => h("li", {}, words)))] : []),
      h("p", { class: "same" }, "The same in a terminal: ", h("code", {}, answer.equals)));
  }

  function common(both) {
    const failures = both.map((each) => each.failure).filter(Boolean), end = Math.max(...both.map((each) => each.series.t_s.at(-1) ?? 0));
    if (!failures.length) return [0, end];
    const begin = Math.min(...failures.map((one) => one.at_s)), last = Math.max(...failures.map((one) => one.recovered_s ?? end));
    const room = Math.max(10, 0.15 * (last - begin));
    return [Math.max(0, Math.floor(begin - room)), Math.min(end, Math.ceil(last + room))];
  }

  function read(hash) {
    const found = { moved: {} };
    for (const [name, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
      if (name === "scenario" || SIDES.includes(name)) found[name] = value;
      else found.moved[name] = value === "null" ? null : value;
    }
    return found;
  }
  function text(of) {
    return String(new URLSearchParams([["scenario", of.scenario ?? ""], ...SIDES.map((name) => [name, of[name] ?? ""]), ...Object.entries(of.moved).map(([name, value]) => [name, String(value)])]));
  }
  function write() {
    if (own) history.replaceState(null, "", `#${text(state)}`);
  }
  async function copy() {
    try {
      await navigator.clipboard.writeText(location.href);
      tell("The link is in the clipboard.");
    } catch {
      tell(location.href);
    }
  }
  describe();
}

// -- sources ----------------------------------------------------------------------------------------------------

export function server(base = "") {
  const me = Math.random().toString(36).slice(2);
  return async (what, request, signal) => {
    const { side = "", ...rest } = request;
    let response;
    try {
      response = await fetch(`${base}/${what}`, { method: "POST", signal, headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...rest, who: `${me} ${what === "picture" ? "answer" : what} ${side}` }) });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Error("Nobody answers: is `tideover explore` still running?");
    }
    const found = await response.json();
    if (!response.ok) throw Object.assign(new Error(found.error), response.status === 409 ? { name: "AbortError" } : {});
    return found;
  };
}

export function table(runs) {
  const source = async (what, request) => {
    if (what === "describe") {
      if (request.scenario && request.scenario !== runs.describe.scenario) throw new Error(`scenario: this page holds ${runs.describe.scenario} only`);
      return runs.describe;
    }
    const moved = Object.entries(request.moved).sort(([a], [b]) => (a < b ? -1 : 1));
    const usual = runs.describe.controls.filter((control) => !control.strategies || control.strategies.includes(request.strategy));
    const key = usual.map((control) => control.name).sort().map((name) => [name, moved.find(([one]) => one === name)?.[1] ?? runs.usual[request.strategy][name]]);
    const found = runs.runs[`${request.strategy} ${JSON.stringify(key)}`];
    if (!found) throw new Error("This run is not in this page: `tideover explore` computes any.");
    return what === "answer" ? found.answer : found.picture;
  };
  source.moves = false;
  return source;
}

// Runs inside of a page are compressed: an element's text is gzip in base64.
export async function inside(element) {
  const bytes = Uint8Array.from(atob(element.textContent.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return table(await new Response(stream).json());
}

// What Jupyter calls (anywidget): answers come as messages of the kernel.
export function render({ model, el }) {
  let last = 0;
  const waiting = new Map();
  model.on("msg:custom", (message) => {
    const { resolve, reject } = waiting.get(message.id) ?? {};
    waiting.delete(message.id);
    if (message.error) reject?.(new Error(message.error));
    else resolve?.(message.answer);
  });
  mount(el, (what, { side, ...request }, signal) => new Promise((resolve, reject) => {
    const id = ++last;
    waiting.set(id, { resolve, reject });
    signal?.addEventListener("abort", () => { waiting.delete(id); reject(new DOMException("given up", "AbortError")); });
    model.send({ id, what, ...request });
  }), { address: false, scenario: model.get("scenario") });
}
export default { render };

const here = document.currentScript ?? document.querySelector("script[data-mount]");
if (here?.dataset.mount) mount(document.getElementById(here.dataset.mount), server());
