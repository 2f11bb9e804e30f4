"use strict";
(() => {
  const { columns, rows } = JSON.parse(document.getElementById("grid-data").textContent);
  const place = document.getElementById("grid");
  const size = 50;
  let order = rows.map((_, i) => i), first = 0, by = 0, sign = 1;
  const value = (row, c) => {
    const v = rows[row][c], names = columns[c].values;
    if (v === null) return null;
    return names ? (columns[c].numbers ? columns[c].numbers[v] : v) : v;
  };
  const units = ["B", "kB", "MB", "GB", "TB"];
  const bytes = v => {
    let n = 0;
    while (Math.abs(v) >= 1000 && n < 4) { v /= 1000; n += 1; }
    return (n ? v.toPrecision(3) : Math.round(v)) + " " + units[n];
  };
  const shown = (row, c) => {
    const v = rows[row][c], column = columns[c];
    if (v === null) return "–";
    if (column.values) return column.values[v];
    return column.bytes ? bytes(v) : v.toLocaleString("en", { maximumSignificantDigits: 4 });
  };
  const make = (name, parent, text) => {
    const made = parent.appendChild(document.createElement(name));
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const sorted = c => {
    sign = c === by ? -sign : 1;
    by = c;
    order.sort((a, b) => {
      const x = value(a, c), y = value(b, c);
      if (x === null || y === null) return (x === null) - (y === null) || a - b;
      return sign * (x - y) || a - b;
    });
    first = 0;
    draw();
  };
  const draw = () => {
    place.replaceChildren();
    const nav = make("nav", place);
    const move = (text, to) => {
      const button = make("button", nav, text);
      button.type = "button";
      button.disabled = to < 0 || to >= rows.length;
      button.onclick = () => { first = to; draw(); };
    };
    const last = Math.min(first + size, rows.length);
    move("Previous", first - size);
    make("span", nav, `${(first + 1).toLocaleString("en")} to ${last.toLocaleString("en")} of ${rows.length.toLocaleString("en")}`);
    move("Next", first + size);
    const scroll = make("div", place);
    scroll.className = "scroll";
    scroll.tabIndex = 0;
    const table = make("table", scroll);
    const head = make("tr", make("thead", table));
    columns.forEach((column, c) => {
      const cell = make("th", head);
      cell.scope = "col";
      if (column.values) cell.className = "text";
      if (c === by) cell.ariaSort = sign > 0 ? "ascending" : "descending";
      const button = make("button", cell, column.name + (c === by ? (sign > 0 ? " ▲" : " ▼") : ""));
      button.type = "button";
      button.onclick = () => sorted(c);
    });
    const body = make("tbody", table);
    for (const row of order.slice(first, last)) {
      const line = make("tr", body);
      columns.forEach((column, c) => {
        const cell = make(c ? "td" : "th", line, shown(row, c));
        if (!c) cell.scope = "row";
        if (column.values) cell.className = "text";
      });
    }
  };
  draw();
})();
