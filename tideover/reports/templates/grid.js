"use strict";
(() => {
  const SIZE = 50;
  const UNITS = {
    "": 1, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400, "/s": 1, "%": 0.01,
    "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1024, "MiB": 1024 ** 2, "GiB": 1024 ** 3,
    "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "k": 1e3, "M": 1e6,
  };
  const bytes = v => {
    const names = ["B", "kB", "MB", "GB", "TB"];
    let n = 0;
    while (Math.abs(v) >= 1000 && n < 4) { v /= 1000; n += 1; }
    return (n ? v.toPrecision(3) : Math.round(v)) + " " + names[n];
  };
  const shown = (column, v) => {
    if (v === null) return "–";
    if (column.values) return column.values[v];
    if (column.bytes) return bytes(v);
    return v.toLocaleString("en", Number.isInteger(v) ? {} : { maximumSignificantDigits: 4 });
  };
  const numeric = column => !column.values || Boolean(column.numbers);
  const value = (column, v) => (v !== null && column.numbers ? column.numbers[v] : v);

  // What was typed as a number: one of the column's own values, or a number with a unit.
  const quantity = (column, text) => {
    const place = column.values ? column.values.indexOf(text) : -1;
    if (place >= 0 && column.numbers) return column.numbers[place];
    const found = /^([-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*([a-zA-Z%/]*)$/.exec(text);
    const factor = found ? UNITS[found[2]] : undefined;
    return factor === undefined ? null : parseFloat(found[1].replace(/,/g, "")) * factor;
  };
  const SIGNS = {
    ">": (a, b) => a > b, ">=": (a, b) => a >= b, "<": (a, b) => a < b, "<=": (a, b) => a <= b,
    "=": (a, b) => a === b, "!=": (a, b) => a !== b,
  };
  const one = (column, sign, text) => {
    if (!text) return null;
    if (!sign) {
      const ends = numeric(column) ? text.split("..") : [];
      if (ends.length === 2) {
        const [low, high] = ends.map(end => quantity(column, end.trim()));
        if (low === null || high === null) return null;
        return v => v !== null && value(column, v) >= low && value(column, v) <= high;
      }
      const part = text.toLowerCase();
      return v => shown(column, v).toLowerCase().includes(part);
    }
    const holds = SIGNS[sign];
    if (numeric(column)) {
      const limit = quantity(column, text);
      return limit === null ? null : v => (v === null ? sign === "!=" : holds(value(column, v), limit));
    }
    const name = text.toLowerCase();
    return v => holds(shown(column, v).toLowerCase(), name);
  };
  // What a cell has to fulfil, as typed into a column's box; null: it is not understood.
  const condition = (column, text) => {
    const typed = text.trim();
    const several = typed && numeric(column) ? typed.split(/(?=(?<![<>!])=|[<>!])/) : [typed];
    const tests = several.filter(part => part).map(part => {
      const found = (numeric(column) ? /^(>=|<=|!=|>|<|=)?\s*([^<>=!]*)$/ : /^(!=|=)?\s*(.*)$/).exec(part.trim());
      return found ? one(column, found[1], found[2].trim()) : null;
    });
    return tests.includes(null) ? null : v => tests.every(test => test(v));
  };
  // The places of the rows that fulfil all conditions, sorted by a column; undefined values come last.
  const chosen = (columns, rows, texts, by, sign) => {
    const tests = texts.map((text, c) => [c, text.trim() ? condition(columns[c], text) : null]);
    const active = tests.filter(([, test]) => test !== null);
    const found = [];
    rows.forEach((row, i) => { if (active.every(([c, test]) => test(row[c]))) found.push(i); });
    const column = columns[by];
    return found.sort((a, b) => {
      const x = value(column, rows[a][by]), y = value(column, rows[b][by]);
      if (x === null || y === null) return (x === null) - (y === null) || a - b;
      return sign * (x - y) || a - b;
    });
  };
  if (typeof document === "undefined") {
    module.exports = { condition, chosen, shown };
    return;
  }

  const { columns, rows, what } = JSON.parse(document.getElementById("grid-data").textContent);
  const place = document.getElementById("grid");
  const texts = columns.map(() => "");
  let order = rows.map((_, i) => i), first = 0, by = 0, sign = 1;
  const make = (name, parent, text) => {
    const made = parent.appendChild(document.createElement(name));
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const pressed = (parent, text, act) => {
    const made = make("button", parent, text);
    made.type = "button";
    made.onclick = act;
    return made;
  };
  const many = n => n.toLocaleString("en");

  place.replaceChildren();
  const nav = make("nav", place);
  const moves = [["First", () => 0], ["Previous", () => first - SIZE], ["Next", () => first + SIZE],
    ["Last", () => Math.floor((order.length - 1) / SIZE) * SIZE]];
  const buttons = moves.map(([text, to]) => pressed(nav, text, () => { first = to(); draw(); }));
  const status = make("span", nav);
  status.setAttribute("role", "status");
  const clear = pressed(nav, "Clear filters", () => {
    texts.fill("");
    for (const box of place.querySelectorAll("input")) { box.value = ""; box.removeAttribute("aria-invalid"); }
    renew();
  });
  const scroll = make("div", place);
  scroll.className = "scroll";
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", `All ${what}`);
  const table = make("table", scroll), thead = make("thead", table), body = make("tbody", table);
  const head = make("tr", thead), boxes = make("tr", thead);
  boxes.className = "filters";
  const heads = columns.map((column, c) => {
    const cell = make("th", head);
    cell.scope = "col";
    if (column.values || !c) cell.className = "text";
    const button = pressed(cell, column.name, () => {
      sign = c === by ? -sign : 1;
      by = c;
      renew();
    });
    const mark = make("span", button);
    mark.ariaHidden = "true";
    return { cell, mark };
  });
  columns.forEach((column, c) => {
    const box = make("input", make("td", boxes));
    box.type = "search";
    box.ariaLabel = `Filter ${column.name}`;
    box.placeholder = numeric(column) ? "> …" : "…";
    box.oninput = () => {
      texts[c] = box.value;
      if (condition(column, box.value) === null) box.setAttribute("aria-invalid", "true");
      else box.removeAttribute("aria-invalid");
      renew();
    };
  });
  const renew = () => {
    order = chosen(columns, rows, texts, by, sign);
    first = 0;
    draw();
  };
  const draw = () => {
    const last = Math.min(first + SIZE, order.length), end = Math.max(0, order.length - 1);
    const all = order.length === rows.length ? "" : ` (of all ${many(rows.length)})`;
    const from = order.length ? `${many(first + 1)} to ${many(last)} of ` : "";
    status.textContent = `${from}${many(order.length)} ${what}${all}`;
    buttons.slice(0, 2).forEach(button => { button.disabled = first === 0; });
    buttons.slice(2).forEach(button => { button.disabled = first + SIZE > end; });
    clear.hidden = !texts.some(text => text.trim());
    heads.forEach(({ cell, mark }, c) => {
      mark.textContent = c === by ? (sign > 0 ? " ▲" : " ▼") : "";
      if (c === by) cell.ariaSort = sign > 0 ? "ascending" : "descending";
      else cell.removeAttribute("aria-sort");
    });
    body.replaceChildren();
    for (const row of order.slice(first, last)) {
      const line = make("tr", body);
      columns.forEach((column, c) => {
        const cell = make(c ? "td" : "th", line, shown(column, rows[row][c]));
        if (!c) cell.scope = "row";
        if (column.values) cell.className = "text";
      });
    }
  };
  draw();
})();
