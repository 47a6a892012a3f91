// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Zoom and search in a flame graph: see zoom.rs, which leaves out these comments. ES5, for any
// browser. Names are only read and written as text, so no name can become markup.

(function () {
  "use strict";
  var svg = (document.currentScript || {}).ownerSVGElement || document.documentElement;
  var group = svg.querySelector(".flame"), rects = group.querySelectorAll("rect");
  var boxes = [], roots = [], path = [], sought = "", current, status;
  // Lengths in pixels, as flame.rs and svg.rs have them.
  var margin = 16, room = 1168, character = 7.2;

  // Each box comes before the boxes above it, which have a smaller y. Its span is in billionths of
  // the room.
  function read(rect) {
    var y = +rect.getAttribute("y"), span = rect.getAttribute("data-span").split(" ");
    var title = rect.querySelector("title").textContent, next = rect.nextElementSibling;
    leave(y);
    var up = path[path.length - 1];
    var box = {
      rect: rect, y: y, from: +span[0], size: +span[1], name: title.slice(0, title.lastIndexOf(": ")),
      text: next && next.tagName === "text" && next, index: boxes.length, up: up
    };
    box.root = up ? up.root : box;
    if (!up) roots.push(box);
    path.push(box);
    boxes.push(box);
    rect.box = box;
    rect.act = function () {
      focus(box);
      zoom(box, box);
    };
    set(rect, { role: "treeitem", tabindex: -1, "aria-level": path.length });
  }

  function leave(y) {
    while (path.length && path[path.length - 1].y <= y) path.pop().end = boxes.length;
  }

  function set(element, values) {
    for (var name in values) element.setAttribute(name, values[name]);
  }

  function add(next, values) {
    var text = document.createElementNS(svg.namespaceURI, "text");
    set(text, values);
    return next.parentNode.insertBefore(text, next);
  }

  // Shows this part of the room in the whole room: a box and the ones above it. The ones below it
  // fill the room.
  function zoom(box, span) {
    for (var i = box.root.index; i < box.root.end; i++) {
      var other = boxes[i];
      other.faint = i < box.index;
      other.gone = other.faint ? other.end <= box.index : i >= box.end;
      draw(other, other.faint ? span : other, span);
    }
  }

  function draw(box, part, span) {
    var x = margin + (part.from - span.from) / span.size * room, width = part.size / span.size * room;
    if (!box.gone) set(box.rect, { x: x, width: Math.max(width - 0.5, 0.2) });
    var count = box.gone || width <= 3 * character ? 0 : Math.min(Math.floor((width - 8) / character), 160);
    if (count && !box.text) box.text = add(box.rect.nextSibling, { y: box.y + 13, fill: "#1a1a1a" });
    if (count) set(box.text, { x: x + 4, "aria-hidden": true });
    if (box.text) box.text.textContent = !count ? "" : box.name.length > count ? box.name.slice(0, count - 1) + "\u2026" : box.name;
    mark(box);
  }

  function mark(box) {
    box.rect.setAttribute("class", (box.gone ? "gone " : box.faint ? "faint " : "") + (box.found ? "found" : ""));
  }

  function reset() {
    roots.forEach(function (root) { zoom(root, { from: 0, size: 1e9 }); });
  }

  // A match above another one is part of it. Roots match nothing: they are all functions together.
  function search() {
    var wanted = window.prompt("Text or /regular expression/", sought);
    if (wanted === null) return;
    var parts = /^\/(.+)\/$/.exec(wanted), until = 0, sums = [];
    try {
      var pattern = new RegExp(parts ? parts[1] : wanted.replace(/[^\w\s]/g, "\\$&"), "i");
    } catch (error) {
      status.textContent = error.message;
      return;
    }
    sought = wanted;
    boxes.forEach(function (box, i) {
      box.found = box.up && wanted && pattern.test(box.name);
      if (!box.up) sums.push(0);
      if (box.found && i >= until) {
        sums[sums.length - 1] += box.size;
        until = box.end;
      }
      mark(box);
    });
    status.textContent = wanted && "found " + sums.map(function (sum, i) {
      return (sum / 1e7).toFixed(1) + " %" + (i ? " " + roots[i].name : "");
    }).join(", ");
  }

  function act(event) {
    var at = event.target;
    if (at.act) at.act();
    return at.act;
  }

  // Only one box is in the order of the Tab key; arrows go from it to others.
  function focus(box) {
    current.rect.setAttribute("tabindex", -1);
    current = box;
    box.rect.setAttribute("tabindex", 0);
    box.rect.focus();
  }

  function beside(box, key) {
    var step = /Up|Right/.test(key) ? 1 : -1, up = key === "ArrowUp" ? box : box.up;
    if (key === "ArrowDown") return up;
    for (var i = box.index; box = boxes[i += step];) if (box.up === up && !box.gone) return box;
  }

  function press(event) {
    var key = event.key, box = event.target.box;
    if (key === "/" || key === "f" && (event.ctrlKey || event.metaKey)) search();
    else if (key === "Escape") reset();
    else if (box && /^Arrow/.test(key) && !event.altKey) focus(beside(box, key) || box);
    else if (!/^( |Enter)$/.test(key) || !act(event)) return;
    event.preventDefault();
  }

  function label(right, y, role) {
    return add(group, { x: margin + room - right, y: y, "text-anchor": "end", role: role });
  }

  function tool(word, right, act) {
    var text = label(right, 24, "button");
    set(text, { tabindex: 0, "class": "tool" });
    text.textContent = word;
    text.act = act;
  }

  [].forEach.call(rects, read);
  leave(1 / 0);
  current = roots[0];
  current.rect.setAttribute("tabindex", 0);
  svg.setAttribute("role", "group");
  group.setAttribute("role", "tree");
  tool("reset", 60, reset);
  tool("search", 0, search);
  status = label(0, 42, "status");
  reset();
  svg.addEventListener("click", act);
  (svg === document.documentElement ? window : svg).addEventListener("keydown", press);
})();
