// Keeps a page fresh and runs its actions. Without it every page is readable, and every filter works.
const language = document.documentElement.lang;
const format = new Intl.NumberFormat(language, { maximumFractionDigits: 2 });
const offline = document.getElementById("offline");
const clock = document.getElementById("clock");
let lastFrame = new Date();

function told(text) {
  const toast = document.getElementById("toast");
  toast.textContent = text;
  toast.hidden = false;
  toast.onclick = () => { toast.hidden = true; };
}

function field(frame, path) {
  return path.split(".").reduce((value, name) => value?.[name], frame);
}

function drawChart(history) {
  if (!history.length) return;
  const top = Math.max(1, ...history.map(([, accepted, done]) => Math.max(accepted, done)));
  const end = history.at(-1)[0];
  const place = (at, value) => `${(900 - (end - at)).toFixed(1)},${(228 - (value / top) * 210).toFixed(1)}`;
  const done = history.map(([at, , value]) => place(at, value)).join(" L");
  document.getElementById("p-accepted").setAttribute("d", `M${history.map(([at, value]) => place(at, value)).join(" L")}`);
  document.getElementById("p-done").setAttribute("d", `M${done}`);
  document.getElementById("p-area").setAttribute("d", `M${(900 - (end - history[0][0])).toFixed(1)},228 L${done} L900,228 Z`);
  document.getElementById("top").textContent = top.toFixed(0);
}

function show(frame) {
  lastFrame = new Date();
  offline.hidden = true;
  for (const element of document.querySelectorAll("[data-f]")) {
    const value = field(frame, element.dataset.f);
    if (value !== undefined) element.textContent = format.format(value);
  }
  if (document.getElementById("p-done")) drawChart(frame.history);
  clock.textContent = new Date(frame.at).toISOString().slice(11, 19);
}

// One stream per visible tab: a hidden tab gives its connection back.
let stream = null;
function follow() {
  if (stream || document.hidden) return;
  stream = new EventSource("/api/overview/stream");
  stream.addEventListener("overview", (event) => show(JSON.parse(event.data)));
  stream.onerror = () => {
    offline.querySelector("time").textContent = lastFrame.toLocaleTimeString(language);
    offline.hidden = false;
  };
}
function rest() {
  stream?.close();
  stream = null;
}
document.addEventListener("visibilitychange", () => (document.hidden ? rest() : follow()));
addEventListener("pagehide", rest);

// Pages other than the overview are drawn again by the server, and only while nobody is busy on them.
async function refresh() {
  const main = document.getElementById("main");
  const busy = document.hidden || document.querySelector("dialog[open]") || main.contains(document.activeElement) || main.querySelector("details[open]");
  if (busy) return;
  const answer = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
  if (!answer?.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
  if (fresh && fresh.dataset.page === main.dataset.page) main.replaceChildren(...fresh.childNodes);
}
if (document.getElementById("main").dataset.page !== "overview") setInterval(refresh, 4000);

// Actions: asked first, with what follows; then a public route, as the API offers it.
function confirmed(button) {
  const dialog = document.getElementById("confirm");
  dialog.querySelector("h2").textContent = button.dataset.confirm;
  dialog.querySelector("p").textContent = `${button.dataset.method} ${button.dataset.path}`;
  const [no, yes] = dialog.querySelectorAll("button");
  yes.textContent = button.textContent;
  dialog.showModal();
  return new Promise((resolve) => {
    no.onclick = () => { dialog.close(); resolve(false); };
    yes.onclick = () => { dialog.close(); resolve(true); };
    dialog.oncancel = () => resolve(false);
  });
}
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-path]");
  if (!button || !(await confirmed(button))) return;
  const { method, path, body } = button.dataset;
  const headers = { "x-ulak-console": "1", "content-type": "application/json" };
  const answer = await fetch(path, { method, headers, body: body || undefined }).catch((error) => ({ ok: false, error }));
  const said = answer.ok ? button.textContent : (await answer.json?.().catch(() => null))?.message ?? String(answer.error ?? answer.status);
  told(said);
  button.blur();
  await refresh();
});

// Rows by keyboard: one row is in the tab order, arrows move, Enter opens.
document.addEventListener("keydown", (event) => {
  const row = event.target.closest?.("tr[tabindex]");
  if (!row) return;
  const next = { ArrowDown: row.nextElementSibling, j: row.nextElementSibling, ArrowUp: row.previousElementSibling, k: row.previousElementSibling }[event.key];
  if (next) {
    row.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
    event.preventDefault();
  } else if (event.key === "Enter" && event.target === row) {
    row.querySelector("a")?.click();
  }
});
follow();
