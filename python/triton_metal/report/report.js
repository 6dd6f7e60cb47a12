"use strict";
// Elements with data-l belong to lines of the Python text; those with a line in common are shown together.
(() => {
  const all = [...document.querySelectorAll("[data-l]")];
  const byLine = new Map();
  for (const element of all) {
    element.tabIndex = 0;
    for (const line of element.dataset.l.split(" ")) {
      if (!byLine.has(line)) byLine.set(line, []);
      byLine.get(line).push(element);
    }
  }
  const marked = { on: "", stuck: "" };
  const mark = (element, name) => {
    const lines = element ? element.dataset.l : "";
    if (lines === marked[name]) return;
    marked[name] = lines;
    for (const other of document.querySelectorAll("." + name + "[data-l]")) other.classList.remove(name);
    if (!element) return;
    for (const line of lines.split(" "))
      for (const other of byLine.get(line)) other.classList.add(name);
  };
  let stuck = null;
  const stick = (element) => {
    stuck = element === stuck ? null : element;
    mark(stuck, "stuck");
    if (!stuck) return;
    for (const pane of document.querySelectorAll(".code")) {
      if (pane.contains(element)) continue;
      const first = pane.querySelector(".stuck");
      if (first) pane.scrollTop = first.offsetTop - pane.clientHeight / 3;
    }
  };
  const of = (event) => event.target instanceof Element && event.target.closest("[data-l]");
  document.addEventListener("mouseover", (event) => mark(of(event), "on"));
  document.addEventListener("focusin", (event) => mark(of(event), "on"));
  document.addEventListener("click", (event) => {
    const element = of(event);
    if (element) stick(element);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { stuck = null; mark(null, "stuck"); return; }
    const element = of(event);
    if (!element) return;
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); stick(element); }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const pane = element.closest(".code");
    if (!step || !pane) return;
    const rows = [...pane.querySelectorAll("[data-l]")];
    const next = rows[rows.indexOf(element) + step];
    if (next) { event.preventDefault(); next.focus(); }
  });
})();

// The pictures of accesses and tiles, as wide as there is room for.
(() => {
  const LINE = 128, MOST_LINES = 16, MOST_ROWS = 32, MOST_COLUMNS = 64, LETTER = 6.7;
  const color = (lane, simdgroup) => `hsl(${Math.floor((lane * 360) / 32)} 65% ${78 - 9 * (simdgroup % 4)}%)`;
  const number = (value) => value.toLocaleString("en-US");
  const text = (kind, x, y, anchor, words) => `<text class="${kind}" x="${x}" y="${y}" text-anchor="${anchor}">${words}</text>`;
  const rect = (kind, x, y, width, height, more = "") =>
    `<rect class="${kind}" x="${x}" y="${y}" width="${width}" height="${height}"${more}/>`;

  // Lanes as ranges: "0–3, 8".
  const ranges = (lanes) => {
    const found = [];
    for (const lane of lanes) {
      const last = found[found.length - 1];
      if (last && last[1] === lane - 1) last[1] = lane;
      else found.push([lane, lane]);
    }
    return found.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)).join(", ");
  };

  const show = (box, width, height, body, label) => {
    box.innerHTML = `<svg viewBox="0 0 ${width} ${height}" role="img" style="width:${width}px">${body.join("")}</svg>`;
    box.firstChild.setAttribute("aria-label", label);
  };

  // The pieces of each line: [first byte, bytes, lanes].
  const piecesOf = ({ bytes, begin, offsets }) => {
    const lanes = new Map();
    offsets.split(" ").forEach((offset, lane) => {
      if (offset === "-") return;
      const place = Number(begin) + Number(offset);
      if (!lanes.has(place)) lanes.set(place, []);
      lanes.get(place).push(lane);
    });
    const lines = new Map();
    for (const [place, some] of [...lanes].sort((a, b) => a[0] - b[0]))
      for (let at = place, end = place + Number(bytes); at < end; ) {
        const line = Math.floor(at / LINE), stop = Math.min(end, (line + 1) * LINE);
        if (!lines.has(line)) lines.set(line, []);
        lines.get(line).push([at - line * LINE, stop - at, some]);
        at = stop;
      }
    return [...lines];
  };

  const drawAccess = (box, room) => {
    const lines = piecesOf(box.dataset), shown = lines.slice(0, MOST_LINES);
    const width = Math.min(748, room), isNarrow = width < 560;
    const left = 12 + LETTER * Math.max(3, ...shown.map(([line]) => number(line * LINE).length));
    const right = isNarrow ? 30 : 76, scale = (width - left - right) / LINE;
    const body = [0, 32, 64, 96, 128].map((place) => text("axis", left + place * scale, 11, "middle", place));
    shown.forEach(([line, pieces], index) => {
      const y = 16 + index * 24, used = new Set();
      body.push(text("axis", left - 6, y + 15, "end", number(line * LINE)));
      body.push(rect("line", left, y, LINE * scale, 20));
      const labels = [];
      let free = left;
      for (const [begin, size, lanes] of pieces) {
        const x = left + begin * scale, words = ranges(lanes), from = line * LINE + begin;
        for (let at = begin; at < begin + size; at++) used.add(at);
        body.push(
          `<g><title>lane ${words}: bytes ${number(from)} to ${number(from + size - 1)}</title>` +
            rect("lane", x, y, size * scale, 20, ` data-lanes="${lanes.join(" ")}" fill="${color(lanes[0], 0)}"`) + "</g>",
        );
        const middle = x + (size * scale) / 2, half = (words.length * LETTER) / 2;
        if (middle - half < free || middle + half > left + LINE * scale) continue;
        free = middle + half + 2;
        labels.push(text("on", middle, y + 14, "middle", words));
      }
      body.push(...labels);
      body.push(text("axis", left + LINE * scale + 6, y + 15, "start", isNarrow ? used.size : `${used.size} of ${LINE}`));
    });
    let height = 20 + 24 * shown.length;
    if (lines.length > shown.length) {
      height += 18;
      body.push(text("axis", left, height - 6, "start", `and ${lines.length - shown.length} more lines`));
    }
    show(box, width, height, body, `${lines.length} lines of ${LINE} bytes`);
  };

  // The SIMD-group, the lane and the register of each element; the lowest where there are several.
  const ownersOf = (bases, count) => {
    const places = bases.map((vectors) => {
      const found = [0];
      for (const vector of vectors) found.push(...found.map((place) => place ^ vector));
      return found;
    });
    const owners = new Array(count);
    places[0].forEach((a, simdgroup) =>
      places[1].forEach((b, lane) =>
        places[2].forEach((c, register) => {
          const place = a ^ b ^ c;
          if (place < count && !owners[place]) owners[place] = [simdgroup, lane, register];
        }),
      ),
    );
    return owners;
  };

  const drawTile = (box, room) => {
    const shape = box.dataset.shape.split(" ").map(Number);
    const bases = box.dataset.bases.split(";").map((some) => some.split(" ").filter(Boolean).map(Number));
    let columns = shape[shape.length - 1], rows = shape.length > 1 ? shape[shape.length - 2] : 1;
    if (shape.length === 1 && columns > 32) [rows, columns] = [columns / 32, 32];
    const owners = ownersOf(bases, rows * columns);
    const fit = 2 ** Math.floor(Math.log2(Math.max(1, room / 8)));
    const high = Math.min(rows, MOST_ROWS), wide = Math.min(columns, MOST_COLUMNS, fit);
    const cell = Math.max(10, Math.min(20, Math.floor(Math.min(room, 640) / wide)));
    const body = [];
    for (let row = 0; row < high; row++)
      for (let column = 0, end; column < wide; column = end) {
        const [simdgroup, lane, register] = owners[row * columns + column];
        let last = register;
        for (end = column + 1; end < wide; end++) {
          const next = owners[row * columns + end];
          if (next[0] !== simdgroup || next[1] !== lane) break;
          last = next[2];
        }
        const width = (end - column) * cell, x = column * cell, y = row * cell;
        const registers = end === column + 1 ? register : `${register} to ${last}`;
        body.push(
          `<g><title>row ${row}, columns ${column} to ${end - 1}: SIMD-group ${simdgroup}, lane ${lane}, register ${registers}</title>` +
            rect("element", x, y, width, cell, ` fill="${color(lane, simdgroup)}"`) +
            (width < 18 ? "" : text("tiny", x + width / 2, y + cell * 0.78, "middle", width < 28 ? lane : `${simdgroup}:${lane}`)) +
            "</g>",
        );
      }
    const isAll = high === rows && wide === columns;
    box.parentElement.querySelector(".shown").textContent = isAll
      ? "" : `; shown: the first ${high} rows and ${wide} columns of ${rows} by ${columns}`;
    show(box, wide * cell, high * cell, body, box.dataset.label);
  };

  const drawn = new Map();
  const draw = (box, room) => {
    if (!room || drawn.get(box) === room) return;
    drawn.set(box, room);
    (box.dataset.shape ? drawTile : drawAccess)(box, room);
  };
  const boxes = [...document.querySelectorAll(".picture.access, .picture.tile")];
  const rooms = boxes.map((box) => box.clientWidth);
  boxes.forEach((box, index) => draw(box, rooms[index]));
  const watch = new ResizeObserver((entries) => {
    for (const { target } of entries) draw(target, target.clientWidth);
  });
  for (const box of boxes) watch.observe(box);
})();
