"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { chunks } = data;
  const count = chunks.length;
  const $ = (id) => document.getElementById(id);
  const el = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const payloadOf = (chunk) => (chunk.payload && typeof chunk.payload === "object" ? chunk.payload : {});
  const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
  const short = (text, limit) => (text.length > limit ? text.slice(0, limit) + "…" : text);

  // What grows: all of it as one text, and how much of it there was after each chunk.
  function growing(wanted) {
    const pieces = [], ends = new Uint32Array(count);
    let length = 0;
    chunks.forEach((chunk, at) => {
      const piece = wanted(chunk);
      if (typeof piece === "string") { pieces.push(piece); length += piece.length; }
      ends[at] = length;
    });
    const text = pieces.join("");
    return (at, from) => text.slice(from > 0 ? ends[from] : 0, ends[at]);
  }
  const textAt = growing((c) => (c.type === "text-delta" || c.type === "routing-agent-text-delta" ? payloadOf(c).text : null));
  const reasoningAt = growing((c) => (c.type === "reasoning-delta" ? payloadOf(c).text : null));

  const objects = [];
  chunks.forEach((chunk, at) => {
    if (/^(network-)?object(-result)?$/.test(chunk.type)) objects.push([at, "object" in chunk ? chunk.object : payloadOf(chunk).object]);
  });
  const deltas = new Map();
  chunks.forEach((chunk, at) => {
    const { toolCallId, argsTextDelta } = payloadOf(chunk);
    if (chunk.type !== "tool-call-delta" || typeof argsTextDelta !== "string") return;
    if (!deltas.has(toolCallId)) deltas.set(toolCallId, []);
    deltas.get(toolCallId).push([at, argsTextDelta]);
  });
  const upTo = (list, at, index = (entry) => entry[0]) => {  // how many entries came until then
    let low = 0, high = list.length;
    while (low < high) { const middle = (low + high) >> 1; if (index(list[middle]) <= at) low = middle + 1; else high = middle; }
    return low;
  };

  // ---- where we are -------------------------------------------------------------------------------------------------
  let now = count ? count - 1 : 0;

  function time(at) {
    if (!data.times) return "";
    const ms = data.times[at];
    if (ms >= 60000) return `+${Math.floor(ms / 60000)} min ${(ms / 1000 % 60).toFixed(1)} s`;
    return ms < 1000 ? `+${Math.round(ms)} ms` : `+${(ms / 1000).toFixed(2)} s`;
  }

  function values(at) {
    const state = {};
    for (let n = 0, end = upTo(data.run, at); n < end; n++) Object.assign(state, data.run[n][1]);
    return state;
  }

  function runs(at) {
    const calls = new Map();
    for (let n = 0, end = upTo(data.tools, at); n < end; n++) {
      const [begun, id, change] = data.tools[n];
      const old = calls.get(id);
      const anew = old && change.state === "input-streaming" && old.state !== "input-streaming";
      calls.set(id, Object.assign(old && !anew ? old : { begun }, change));
    }
    return calls;
  }

  function argumentsOf(id, call, at) {
    if (call.state !== "input-streaming") return call.args === undefined || call.args === null ? "" : JSON.stringify(call.args);
    const list = deltas.get(id) || [];
    return list.slice(upTo(list, call.begun - 1), upTo(list, at)).map((delta) => delta[1]).join("");
  }

  function box(name, text) {
    $(`${name}-box`).hidden = !text;
    const pre = $(name);
    pre.textContent = text;
    pre.scrollTop = pre.scrollHeight;
  }

  function fact(name, value, className) {
    const div = el("div");
    div.append(el("dt", "", name), el("dd", className, value));
    div.dataset.name = name;
    return div;
  }

  function show() {
    if (!count) { $("where").textContent = "no chunks"; return; }
    const chunk = chunks[now], state = values(now), usage = state.usage || {};
    $("position").value = now;
    $("position").setAttribute("aria-valuetext", `chunk ${now + 1} of ${count}, ${chunk.type}`);
    const where = $("where");
    where.replaceChildren(el("b", "", (now + 1).toLocaleString("en")), ` of ${count.toLocaleString("en")} · ${chunk.type}${data.times ? " · " + time(now) : ""}`);
    const tokens = usage.totalTokens ?? (usage.inputTokens || 0) + (usage.outputTokens || 0);
    const facts = [
      fact("Status", state.status || "running", state.status),
      fact("Finish reason", state.finishReason || "–"),
      fact("Steps done", String(state.steps || 0)),
      fact("Tokens", tokens ? tokens.toLocaleString("en") : "–"),
    ];
    if (tokens && usage.inputTokens !== undefined) {
      const parts = `${usage.inputTokens.toLocaleString("en")} in, ${(usage.outputTokens ?? 0).toLocaleString("en")} out`;
      facts[3].querySelector("dd").append(el("small", "", parts));
    }
    if (state.error) facts.push(fact("Error", state.error, "failed"));
    if (state.tripwire) facts.push(fact("Blocked", state.tripwire, "failed"));
    $("values").replaceChildren(...facts);
    box("text", textAt(now, state.textFrom));
    box("reasoning", reasoningAt(now, state.textFrom));
    const object = upTo(objects, now);
    box("object", object ? JSON.stringify(objects[object - 1][1], null, 2) : "");
    const calls = runs(now);
    $("tools-box").hidden = !calls.size;
    const ids = [...calls.keys()].slice(-200);
    $("tools").replaceChildren(...ids.map((id) => {
      const call = calls.get(id), item = el("li"), head = el("div", "head");
      head.append(el("span", "name", call.name || id), el("span", call.state, call.state));
      item.append(head);
      item.title = id;
      const args = argumentsOf(id, call, now);
      if (args) item.append(el("code", "args", short(args, 1500)));
      if (call.result !== undefined) item.append(el("code", "result", "→ " + short(JSON.stringify(call.result), 1500)));
      if (call.error) item.append(el("code", "failed", call.error));
      return item;
    }));
    $("raw").textContent = short(shown(chunk), 200000);
    $("raw").scrollTop = 0;
    cursor();
    paint();
  }

  function go(at, reveal = true) {
    now = Math.min(Math.max(at, 0), count - 1);
    if (reveal) revealRow();
    show();
  }

  // ---- the picture --------------------------------------------------------------------------------------------------
  const svg = document.querySelector(".paper svg");
  const room = data.width - data.left - data.right;
  const placeOf = (at) => (data.places ? data.places[at] : (at + 0.5) / count);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  line.setAttribute("class", "cursor");
  line.setAttribute("y1", 44);
  line.setAttribute("y2", svg.viewBox.baseVal.height - 34);
  if (count) svg.append(line);

  function cursor() {
    const x = data.left + placeOf(now) * room;
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
  }

  svg.addEventListener("click", (event) => {
    if (!count) return;
    const piece = event.target.closest("[data-at]");
    const bounds = svg.getBoundingClientRect();
    const place = (((event.clientX - bounds.left) / bounds.width) * data.width - data.left) / room;
    let low = 0, high = count - 1;
    while (low < high) { const middle = (low + high) >> 1; if (placeOf(middle) < place) low = middle + 1; else high = middle; }
    if (low && place - placeOf(low - 1) < placeOf(low) - place) low--;
    if (piece) low = Math.min(Math.max(low, +piece.dataset.at), +(piece.dataset.to ?? piece.dataset.at));
    else if (place < -0.01 || place > 1.02) return;
    go(low);
  });

  // ---- the list -----------------------------------------------------------------------------------------------------
  const HEIGHT = 24, rows = $("rows"), space = $("space");
  const types = new Map();
  for (const chunk of chunks) types.set(chunk.type, (types.get(chunk.type) || 0) + 1);
  const chosen = new Set();
  let lower = null;
  let listed = chunks.map((_, at) => at);

  function about(chunk) {
    const payload = payloadOf(chunk);
    const text = payload.text ?? payload.argsTextDelta;
    if (typeof text === "string") return JSON.stringify(text).slice(1, -1);
    const rest = "payload" in chunk ? chunk.payload : chunk.object ?? chunk.data;
    return rest === undefined ? "" : short(JSON.stringify(rest), 300);
  }

  function paint() {
    const first = Math.max(0, Math.floor(rows.scrollTop / HEIGHT) - 5);
    const last = Math.min(listed.length, first + Math.ceil(rows.clientHeight / HEIGHT) + 10);
    const visible = [];
    let active = "";
    for (let n = first; n < last; n++) {
      const at = listed[n], row = el("div", at > now ? "row later" : "row");
      row.id = `row-${at}`;
      row.dataset.at = at;
      row.style.top = `${n * HEIGHT}px`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", at === now);
      row.setAttribute("aria-posinset", n + 1);
      row.setAttribute("aria-setsize", listed.length);
      if (at === now) active = row.id;
      row.append(el("span", "number", (at + 1).toLocaleString("en")), el("span", "kind", chunks[at].type), el("span", "about", about(chunks[at])));
      visible.push(row);
    }
    space.style.height = `${listed.length * HEIGHT}px`;
    space.replaceChildren(...visible);
    rows.setAttribute("aria-activedescendant", active);
  }

  const placeInList = (at) => upTo(listed, at, (one) => one) - 1;
  function revealRow() {
    const top = Math.max(0, placeInList(now)) * HEIGHT;
    if (top < rows.scrollTop || top + HEIGHT > rows.scrollTop + rows.clientHeight) rows.scrollTop = top - rows.clientHeight / 2;
  }

  function filter() {
    const words = $("search").value.toLowerCase();
    if (words && !lower) lower = chunks.map((chunk) => JSON.stringify(chunk).toLowerCase());
    listed = [];
    chunks.forEach((chunk, at) => {
      if ((!chosen.size || chosen.has(chunk.type)) && (!words || lower[at].includes(words))) listed.push(at);
    });
    $("found").textContent = listed.length === count ? `${count.toLocaleString("en")} chunks` : `${listed.length.toLocaleString("en")} of ${count.toLocaleString("en")}`;
    revealRow();
    paint();
  }

  for (const [type, number] of [...types].sort((a, b) => b[1] - a[1])) {
    const button = el("button", "", `${type} ${number.toLocaleString("en")}`);
    button.type = "button";
    button.dataset.type = type;
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      if (!chosen.delete(type)) chosen.add(type);
      button.setAttribute("aria-pressed", chosen.has(type));
      filter();
    });
    $("types").append(button);
  }
  $("search").addEventListener("input", filter);
  rows.addEventListener("scroll", paint);
  space.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row) go(+row.dataset.at, false);
  });

  // ---- keys ---------------------------------------------------------------------------------------------------------
  $("position").max = Math.max(0, count - 1);
  $("position").addEventListener("input", (event) => go(+event.target.value));
  $("previous").addEventListener("click", () => go(now - 1));
  $("next").addEventListener("click", () => go(now + 1));
  rows.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12 }[event.key];
    if (!step || !listed.length) return;
    event.preventDefault();
    const here = placeInList(now), exact = listed[here] === now;
    const to = step > 0 ? here + step : here + step + (exact ? 0 : 1);
    go(listed[Math.min(Math.max(to, 0), listed.length - 1)]);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea")) return;
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -count, End: count }[event.key];
    if (step) { event.preventDefault(); go(now + step * (event.shiftKey ? 10 : 1)); }
    if (event.key === "/") { event.preventDefault(); $("search").focus(); }
  });

  filter();
  go(now);
})();
