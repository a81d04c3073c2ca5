// What a reader would trip over: returns a list of complaints about the page that is shown.
(() => {
  const complaints = [];
  const shown = (one) => one.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && one.getClientRects().length > 0;
  const numbers = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const over = ([r, g, b, a = 1], under) => [r, g, b].map((value, place) => value * a + under[place] * (1 - a));
  const ground = (one) => {
    const layers = [];
    for (let node = one; node; node = node.parentElement) {
      const colour = numbers(getComputedStyle(node).backgroundColor);
      if (colour.length && (colour[3] ?? 1) > 0) layers.push(colour);
      if ((colour[3] ?? 1) === 1) break;
    }
    return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255]);
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((value) => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
  };
  // Contrast of every text that stands on a plain ground. Labels of the map stand on the map's own ground.
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !shown(one) || one.closest(".unseen, .skip, script, style, a.s-running .task, .label")) continue;
    const style = getComputedStyle(one);
    const ink = numbers(one.closest("svg") ? style.fill : style.color);
    if (ink.length < 3) continue;
    const under = ground(one);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    const found = ratio(over(ink, under), under);
    if (found < (large ? 3 : 4.5)) complaints.push(`contrast ${found.toFixed(2)}: ${one.tagName}.${one.className} "${walker.currentNode.data.trim().slice(0, 40)}"`);
  }
  // Ids are unique, labels point to something, there is one main heading, tables have headings.
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  for (const id of new Set(ids.filter((one, place) => ids.indexOf(one) !== place))) complaints.push(`twice: #${id}`);
  for (const one of document.querySelectorAll("[aria-labelledby]")) if (!document.getElementById(one.getAttribute("aria-labelledby"))) complaints.push(`no label: ${one.outerHTML.slice(0, 80)}`);
  if (document.querySelectorAll("h1").length !== 1) complaints.push("not one h1");
  for (const one of document.querySelectorAll("th:not([scope])")) complaints.push(`th without scope: ${one.outerHTML}`);
  for (const one of document.querySelectorAll("[style]")) complaints.push(`style attribute: ${one.outerHTML.slice(0, 80)}`);
  // Targets are 24 px at least; links within a sentence or a cell are as tall as their line.
  for (const one of document.querySelectorAll("button, input:not([type=hidden]), select, summary, nav a, .chip, .btn")) {
    const box = one.getBoundingClientRect();
    if (shown(one) && (box.width < 24 || box.height < 23.5)) complaints.push(`small target ${box.width}×${box.height}: ${one.outerHTML.slice(0, 80)}`);
  }
  // Nothing has to be scrolled sideways.
  const wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > wide) {
    const guilty = [...document.querySelectorAll("body *")].filter((one) => shown(one) && one.getBoundingClientRect().right > wide + 1);
    complaints.push(`sideways: ${guilty.slice(0, 3).map((one) => one.outerHTML.slice(0, 100)).join(" | ")}`);
  }
  for (const one of document.querySelectorAll(".card")) if (shown(one) && one.scrollWidth > one.clientWidth + 1) complaints.push(`wider than its card: #${one.id}`);
  if (/undefined|NaN|\[object |None\b/.test(document.querySelector("main").innerText)) complaints.push("a value that is no word");
  return complaints;
})();
