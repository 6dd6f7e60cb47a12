"use strict";
// Elements with data-l belong to lines of the Python text; those with a line in common are shown together.
(() => {
  const all = [...document.querySelectorAll("[data-l]")];
  const byLine = new Map();
  for (const element of all)
    for (const line of element.dataset.l.split(" ")) {
      if (!byLine.has(line)) byLine.set(line, []);
      byLine.get(line).push(element);
    }
  const mark = (element, name) => {
    for (const other of document.querySelectorAll("." + name + "[data-l]")) other.classList.remove(name);
    if (!element) return;
    for (const line of element.dataset.l.split(" "))
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
