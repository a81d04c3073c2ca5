// Keeps a page fresh and runs its actions. Without it every page is readable, and every link and filter works.
const language = document.documentElement.lang;
const numbers = new Intl.NumberFormat(language, { maximumFractionDigits: 2 });
const $ = (selector, from = document) => from.querySelector(selector);
const offline = $("#offline");
const clock = $("#clock");
const live = $("#live");
const toasts = $("#toasts");
const zone = clock.dataset.zone;
const REFRESH_MILLIS = 4000;
const RETRY_SECONDS = 5;
const SILENCE_MILLIS = 10_000; // frames come once a second
let behind = 0; // how much the server's clock is ahead of ours, in milliseconds
let lostAt = null;
let retry = 0;

const timeOf = (date) => date.toLocaleTimeString("en-GB", { timeZone: zone });
const now = () => new Date(Date.now() + behind);

// A toast tells only what you did, and stays until it is closed.
function tell(text, good, secret) {
  const toast = document.createElement("p");
  toast.className = `toast ${good ? "s-done" : "s-dead"}`;
  toast.innerHTML = `<svg class="icon" aria-hidden="true"><use href="#i-${good ? "done" : "dead"}"/></svg><span></span><button class="btn" type="button"></button>`;
  $("span", toast).textContent = text;
  $("button", toast).textContent = toasts.dataset.close;
  $("button", toast).onclick = () => toast.remove();
  if (secret) {
    const shown = document.createElement("code");
    shown.textContent = secret;
    const button = document.createElement("button");
    Object.assign(button, { className: "btn", type: "button", textContent: toasts.dataset.copy, onclick: () => clip(secret) });
    $("span", toast).append(shown, button);
  }
  toasts.replaceChildren(toast);
}
async function clip(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // a page that came over plain HTTP from elsewhere has no clipboard
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}
async function copy(button) {
  await clip(button.dataset.copy);
  tell(`${toasts.dataset.copied}: ${button.dataset.copy}`, true);
}

// The overview's figures, once a second, in their places.
function spark(values) {
  const top = Math.max(1, ...values);
  return values.length < 2 ? "" : "M" + values.map((value, place) => `${((place * 100) / (values.length - 1)).toFixed(1)} ${(23 - (value / top) * 21).toFixed(1)}`).join("L");
}
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => one >= value * 0.999);
}
function drawNotes(incidents, end, seconds) {
  const notes = $("#flow-notes");
  const make = (tag, values) => {
    const one = document.createElementNS(notes.namespaceURI, tag);
    for (const [name, value] of Object.entries(values)) one.setAttribute(name, value);
    return one;
  };
  const seen = incidents.map((one) => [100 - ((end - one.at / 1000) / seconds) * 100, one.destination]).filter(([x]) => x >= 0);
  const drawn = seen.map(([x]) => make("line", { class: "note", x1: `${x}%`, x2: `${x}%`, y1: 16, y2: 228 }));
  if (seen.length) {
    const [x, name] = seen.at(-1);
    drawn.push(make("text", { class: "note-text", x: `${x}%`, y: 11, "text-anchor": x > 50 ? "end" : "start" }));
    drawn.at(-1).textContent = notes.dataset.opened.replace("{name}", name);
  }
  notes.replaceChildren(...drawn);
}
function drawFlow({ history, incidents }) {
  $("#flow-note")?.remove();
  const step = nice(Math.max(1, ...history.map(([, accepted, done]) => Math.max(accepted, done))) / 3);
  const end = now() / 1000;
  const seconds = Math.min(Math.max(end - history[0][0], 60), 900);
  const x = (at) => Math.max(900 - ((end - at) / seconds) * 900, 0).toFixed(1);
  const line = (column) => history.map((one) => `${x(one[0])} ${(228 - (one[column] / (step * 3)) * 190).toFixed(1)}`).join("L");
  $("#p-accepted").setAttribute("d", `M${line(1)}`);
  $("#p-done").setAttribute("d", `M${line(2)}`);
  $("#p-area").setAttribute("d", `M${x(history[0][0])} 228L${line(2)}L${x(history.at(-1)[0])} 228Z`);
  drawNotes(incidents, end, seconds);
  document.querySelectorAll("#flow .scale").forEach((text, place) => {
    text.textContent = text.textContent.replace(/^\S+/, numbers.format(step * (place + 1)));
  });
  document.querySelectorAll("#flow .when").forEach((text, place) => {
    text.textContent = timeOf(new Date((end - (seconds * (3 - place)) / 3) * 1000)).slice(0, seconds === 900 ? 5 : 8);
  });
}
function show(frame) {
  behind = frame.at - Date.now();
  for (const element of document.querySelectorAll("[data-f]")) {
    const value = element.dataset.f.split(".").reduce((found, name) => found?.[name], frame);
    if (value !== undefined) element.textContent = numbers.format(value);
  }
  for (const [name, values] of Object.entries(frame.sparks)) $(`#spark-${name}`)?.setAttribute("d", spark(values));
  if ($("#p-done") && frame.history.length) drawFlow(frame);
}

// Once a second: the clock, deadlines by the server's time, and how old the picture is while the connection is lost.
const minutes = (seconds) => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
function tick() {
  if (lostAt === null) clock.textContent = timeOf(now());
  for (const element of document.querySelectorAll("[data-until]")) {
    element.textContent = minutes(Math.max(Math.floor((new Date(element.dataset.until) - now()) / 1000), 0));
  }
  for (const element of document.querySelectorAll("[data-share]")) {
    const share = Math.min(Math.max((new Date(element.dataset.share) - now()) / 10 / element.dataset.whole, 0), 100);
    if (element.tagName === "rect") element.setAttribute("width", `${share}%`);
    else element.setAttribute("stroke-dasharray", `${share} 100`);
  }
  if (stream && Date.now() - heardAt > SILENCE_MILLIS) broken();
  else if (!stream && retry-- <= 0) follow();
  if (lostAt !== null) tellAge();
}
setInterval(tick, 1000);

// One stream per visible tab: a hidden tab gives its connection back.
let stream = null;
let heardAt = 0;
function tellAge() {
  $(".age", offline).textContent = minutes(Math.round((now() - lostAt) / 1000));
  $(".wait", offline).textContent = String(Math.max(retry, 0));
}
async function broken() {
  rest();
  retry = RETRY_SECONDS;
  const answer = await fetched();
  if (answer?.ok) found(); // the server is there: the stream was cut, or this key may not follow it
  else lost();
}
function lost() {
  if (lostAt !== null) return;
  lostAt = now();
  offline.hidden = false;
  $("time", offline).textContent = timeOf(lostAt);
  live.textContent = live.dataset.lost;
  live.parentElement.classList.add("lost");
  tellAge();
}
function found() {
  if (lostAt === null) return;
  lostAt = null;
  offline.hidden = true;
  live.textContent = live.dataset.live;
  live.parentElement.classList.remove("lost");
  refresh();
}
function follow(again = false) {
  if (again) rest();
  if (stream || document.hidden) return;
  retry = RETRY_SECONDS;
  heardAt = Date.now();
  stream = new EventSource("/api/overview/stream");
  stream.addEventListener("overview", (event) => {
    heardAt = Date.now();
    found();
    show(JSON.parse(event.data));
  });
  stream.onerror = broken;
}
function rest() {
  stream?.close();
  stream = null;
}
document.addEventListener("visibilitychange", () => (document.hidden ? rest() : follow()));
addEventListener("pagehide", rest);
addEventListener("pageshow", () => follow());
$("button", offline).onclick = () => follow(true);

// Everything else is drawn again by the server. What has the focus keeps it: rows by their id, and a form is left alone.
function renewRows(old, fresh) {
  const body = $("tbody", old);
  const rows = new Map([...fresh.querySelectorAll("tbody tr")].map((row) => [row.id, row]));
  for (const row of body.rows) {
    const other = rows.get(row.id);
    if (other && !row.contains(document.activeElement)) row.innerHTML = other.innerHTML;
    else if (other && row === document.activeElement) row.innerHTML = other.innerHTML;
  }
  const newer = [...rows.keys()].filter((id) => !body.querySelector(`[id="${CSS.escape(id)}"]`)).length;
  let note = $(".newer", old);
  if (newer && !note) {
    note = document.createElement("button");
    note.className = "newer more";
    note.type = "button";
    note.onclick = () => { document.activeElement.blur(); refresh(); };
    $("table", old).before(note);
  }
  if (note) note.textContent = toasts.dataset.newer.replace("{n}", numbers.format(newer));
}
function keepOpen(old, fresh) {
  for (const [place, details] of old.querySelectorAll("details").entries()) {
    const row = details.closest("tr[id]"); // newer rows move it down
    const other = row ? $(`[id="${CSS.escape(row.id)}"] details`, fresh) : fresh.querySelectorAll("details")[place];
    if (other) other.open = details.open;
  }
}
const isTyped = (part) => [...part.querySelectorAll("input")].some((input) => input.value !== input.defaultValue);
function renew(old, fresh) {
  const focused = old.contains(document.activeElement);
  keepOpen(old, fresh);
  if (focused && document.activeElement.closest("tbody") && $("tbody", fresh)) return renewRows(old, fresh);
  if (focused || isTyped(old) || old.querySelector("[data-revealed], [data-simulate], [data-preview], input:checked")) return;
  if (old.innerHTML !== fresh.innerHTML) old.replaceChildren(...fresh.childNodes);
}
async function fetched() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" }, signal: AbortSignal.timeout(SILENCE_MILLIS) }).catch(() => null);
  if (answer?.redirected && answer.url.includes("/login")) location.assign(answer.url); // the session has ended
  return answer;
}
async function refresh() {
  if (document.hidden || lostAt !== null || $("dialog[open]")) return;
  const answer = await fetched();
  if (!answer?.ok || $("dialog[open]")) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const parts = (root) => root.querySelectorAll("#main section[id], #main .head");
  const places = [...parts(page)].map((one) => one.id).join();
  if (places !== [...parts(document)].map((one) => one.id).join()) {
    if (!$("#main").contains(document.activeElement) && !isTyped($("#main"))) $("#main").replaceChildren(offline, ...[...$("#main", page).children].slice(1));
    return;
  }
  for (const part of parts(document)) renew(part, page.getElementById(part.id));
  const [menu, fresh] = [$("#nav"), $("#nav", page)];
  if (!menu.contains(document.activeElement)) menu.replaceChildren(...fresh.childNodes);
}
setInterval(refresh, REFRESH_MILLIS);

// Actions: asked first, with what follows and the number concerned; then a public route, as the API offers it.
const headers = { "x-ulak-console": "1", "content-type": "application/json" };
async function call(method, path, body) {
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) }).catch((error) => ({ error }));
  const document_ = await answer.json?.().catch(() => null);
  return { ok: answer.ok, document: document_, message: document_?.message ?? String(answer.error ?? answer.status) };
}
async function entry(field, place) {
  const label = document.createElement("label");
  const input = document.createElement(field.form === "json" ? "textarea" : "input");
  let value = field.value;
  if (value.startsWith("reveal:")) {
    const revealed = await call("GET", `${value.slice(7)}?reveal=true`);
    value = JSON.stringify(revealed.document?.payload ?? null, null, 2);
  }
  if (field.form === "instant") value ||= new Date(now() - 86_400_000).toISOString().slice(0, 19) + "Z";
  input.name = field.name || "whole";
  input.value = value.startsWith("{") && field.form === "number" ? "" : value;
  if (field.form === "number") input.inputMode = "numeric";
  label.append(field.label, input);
  place.append(label);
}
async function confirmed(button, body, number) {
  const dialog = $("#confirm");
  const { title, one, follows, out, entries } = button.dataset;
  const put = (text) => text.replace("{n}", numbers.format(number ?? 1));
  $("h2", dialog).textContent = put(number === 1 && one ? one : title);
  $("p", dialog).textContent = put(follows);
  const place = $(".entries", dialog);
  place.replaceChildren();
  for (const field of JSON.parse(entries ?? "[]")) await entry(field, place);
  const [no, yes] = dialog.querySelectorAll(".btns button");
  no.textContent = out;
  yes.textContent = put(button.textContent);
  yes.className = `btn ${button.classList.contains("risk") ? "risk" : "go"}`;
  dialog.returnValue = "no";
  dialog.showModal();
  no.focus();
  await new Promise((resolve) => { dialog.addEventListener("close", resolve, { once: true }); });
  if (dialog.returnValue !== "yes") return null;
  let sent = body;
  for (const field of JSON.parse(entries ?? "[]")) {
    const text = $(`[name="${field.name || "whole"}"]`, place).value.trim();
    if (field.form === "json") sent = JSON.parse(text);
    else if (text !== "") sent = { ...sent, [field.name]: field.form === "number" ? Number(text.replaceAll(/[^0-9.]/g, "")) : text };
  }
  return { body: sent };
}
async function act(button) {
  const { method, path } = button.dataset;
  let body = button.dataset.body ? JSON.parse(button.dataset.body) : undefined;
  let number;
  if (button.closest(".chosen")) {
    body.ids = [...button.closest("section").querySelectorAll("input:checked")].map((box) => box.value);
    number = body.ids.length;
  }
  if ("dry" in button.dataset) {
    const tried = await call(method, path, { ...body, dryRun: true });
    if (!tried.ok) return tell(tried.message, false);
    number = tried.document.matched;
  }
  let agreed;
  try {
    agreed = await confirmed(button, body, number);
  } catch (error) {
    return tell(String(error.message), false);
  }
  if (!agreed) return button.focus();
  const answer = await call(method, path, agreed.body);
  const done = `${$("#confirm .btns button:last-child").textContent}: ${toasts.dataset.done}`;
  tell(answer.ok ? done : answer.message, answer.ok, answer.ok && answer.document?.[button.dataset.shows]);
  for (const box of document.querySelectorAll("input:checked")) box.checked = false;
  count();
  button.blur();
  await refresh();
}
function count() {
  for (const place of document.querySelectorAll(".chosen")) {
    const number = place.closest("section").querySelectorAll("input:checked").length;
    place.hidden = !number;
    const button = $("button", place);
    button.dataset.label ??= button.textContent;
    button.textContent = button.dataset.label.replace("{n}", numbers.format(number));
  }
}
async function reveal(button) {
  const place = document.getElementById(button.dataset.into);
  const masked = place.innerHTML;
  const answer = await call("GET", `${button.dataset.reveal}?reveal=true`);
  if (!answer.ok) return tell(answer.message, false);
  place.textContent = JSON.stringify(answer.document[button.dataset.field], null, 2);
  place.dataset.revealed = "";
  const label = button.textContent;
  button.textContent = toasts.dataset.again;
  const hide = () => { place.innerHTML = masked; delete place.dataset.revealed; button.textContent = label; button.onclick = null; clearTimeout(timer); };
  const timer = setTimeout(hide, 60_000);
  button.onclick = (event) => { event.stopPropagation(); hide(); };
}
document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.path) act(button);
  else if (button?.dataset.copy) copy(button);
  else if (button?.dataset.reveal && !("revealed" in document.getElementById(button.dataset.into).dataset)) reveal(button);
});
document.addEventListener("change", count);

// Forms that only look: a plan on a virtual clock, a template in each of its languages.
document.addEventListener("submit", async (event) => {
  const form = event.target;
  const { simulate, preview } = form.dataset;
  if (!simulate && !preview) return;
  event.preventDefault();
  let variables;
  try {
    variables = JSON.parse(form.elements.variables.value || "{}");
  } catch (error) {
    return tell(error.message, false);
  }
  const answer = simulate
    ? await call("POST", "/api/actions/simulate", { action_plan_id: Number(simulate), variables })
    : await call("POST", preview, { variables });
  if (!answer.ok) return tell(answer.message, false);
  const place = form.nextElementSibling;
  if (preview) return showPreviews(place, answer.document);
  $("table", place).hidden = false;
  $("tbody", place).replaceChildren(...answer.document.timeline.map((one) => {
    const row = document.createElement("tr");
    for (const text of [timeOf(new Date(one.at)), one.step_order, one.channel_type, one.decision, one.why]) row.insertCell().textContent = text;
    return row;
  }));
});
function showPreviews(place, previews) {
  place.replaceChildren(...previews.map((one) => {
    const part = document.createElement("section");
    part.lang = one.language;
    const heading = document.createElement("h3");
    heading.textContent = one.language.toUpperCase() + (one.subject ? `: ${one.subject}` : "");
    const text = document.createElement("pre");
    text.textContent = one.error ?? one.body;
    part.append(heading, text);
    return part;
  }));
}

// Rows by keyboard: one row is in the tab order, arrows move, Enter opens, x selects.
document.addEventListener("keydown", (event) => {
  const row = event.target.closest?.("tr[tabindex]");
  if (!row || event.target.closest("button, input, a")) return;
  const next = { ArrowDown: row.nextElementSibling, j: row.nextElementSibling, ArrowUp: row.previousElementSibling, k: row.previousElementSibling }[event.key];
  if (next) {
    row.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    event.preventDefault();
  } else if (event.key === "Enter") row.querySelector("a")?.click();
  else if (event.key === "x") row.querySelector("input[type=checkbox]")?.click();
});
follow();
