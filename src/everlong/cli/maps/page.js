"use strict";
(() => {
  const rows = [...document.querySelectorAll(".m")];
  const rounds = [...document.querySelectorAll(".round")];
  const picture = document.querySelector(".history");
  const tip = document.getElementById("tip");
  const find = document.getElementById("find");
  const count = document.getElementById("found");
  const buttons = [...document.querySelectorAll(".legend button")];

  // Going to a message opens the round it is in.
  const reveal = (row, move) => {
    for (let node = row; node; node = node.parentElement) {
      node.hidden = false;
      if (node.tagName === "DETAILS") node.open = true;
    }
    if (move) row.scrollIntoView({ block: "center" });
  };
  const follow = () => {
    const row = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (row && row.tagName === "DETAILS") reveal(row, true);
  };
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.hash === location.hash) follow();
  });

  // The picture: where the pointer is, in tokens, and the message that stands there.
  const starts = [];
  let before = picture ? Number(picture.dataset.front) : 0;
  const weighed = rows.filter((row) => row.dataset.t !== undefined);
  for (const row of weighed) { starts.push(before); before += Number(row.dataset.t); }
  const at = (event) => {
    const area = picture.getBoundingClientRect();
    const token = Number(picture.dataset.total) * (event.clientX - area.left) / area.width;
    let low = 0, high = starts.length - 1;
    if (high < 0 || token < starts[0]) return null;
    while (low < high) { const mid = (low + high + 1) >> 1; if (starts[mid] <= token) low = mid; else high = mid - 1; }
    return weighed[low];
  };
  const words = (tag, text) => { const node = document.createElement(tag); node.textContent = text; return node; };
  const show = (event) => {
    const row = at(event);
    tip.hidden = !row;
    if (!row) return;
    const part = (name) => (row.querySelector("summary " + name) || { textContent: "" }).textContent;
    const tags = [...row.querySelectorAll("summary .tag")].map((tag) => tag.title || tag.textContent).join(" · ");
    tip.replaceChildren(
      words("span", [part(".no"), part(".kind").trim(), part(".num")].join(" · ")),
      words("b", part(".line")), words("span", tags));
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(8, Math.min(innerWidth - box.width - 8, event.clientX + 14)) + "px";
    tip.style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18) + "px";
  };
  if (picture) {
    picture.addEventListener("pointermove", show);
    picture.addEventListener("pointerleave", () => { tip.hidden = true; });
    picture.addEventListener("click", (event) => {
      const row = at(event);
      if (row) { tip.hidden = true; location.hash = row.id; reveal(row, true); }
    });
  }

  // Filtering: words in titles and texts, categories and states from the legends.
  const chosen = new Set();
  const texts = new Map();
  const text = (row) => {
    if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase());
    return texts.get(row);
  };
  const apply = () => {
    const wanted = find.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const active = wanted.length > 0 || chosen.size > 0;
    let left = 0;
    for (const row of rows) {
      const fits = (!chosen.size || row.dataset.k.split(" ").some((name) => chosen.has(name)))
        && wanted.every((word) => text(row).includes(word));
      row.hidden = !fits;
      if (fits) left += 1;
    }
    for (const round of rounds) {
      const some = !active || round.querySelector(".m:not([hidden])") !== null;
      round.hidden = !some;
      if (wanted.length) round.open = some;
    }
    for (const note of document.querySelectorAll(".cut-here")) note.hidden = active;
    count.textContent = active ? count.dataset.text.replace("0", left) : "";
    if (picture) {
      picture.classList.toggle("dim", chosen.size > 0);
      for (const path of picture.querySelectorAll("path")) {
        path.classList.toggle("on", [...chosen].some((name) => path.classList.contains("c-" + name)));
      }
    }
  };
  let waiting = 0;
  find.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(apply, 120); });
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const name = button.dataset.k;
      if (!chosen.delete(name)) chosen.add(name);
      button.setAttribute("aria-pressed", String(chosen.has(name)));
      apply();
    });
  }
  follow();
})();
