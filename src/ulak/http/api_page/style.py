"""How the page of the API looks: one sheet for light and dark, small screens and paper. No rules about content."""

from __future__ import annotations

STYLE = """\
:root { color-scheme: light dark; --ink: #1d2127; --soft: #5b6470; --line: #dfe3e8; --paper: #ffffff; --shade: #f5f6f8;
  --link: #0b5cad; --get: #0b6e4f; --post: #8a4b00; --put: #5b3fa0; --delete: #a3122a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --soft: #9aa4b1; --line: #323a44; --paper: #14181d;
  --shade: #1c2229; --link: #7db7f5; --get: #55c79d; --post: #e6a45a; --put: #b39df0; --delete: #f28193; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif;
  display: grid; grid-template: auto 1fr / 20rem minmax(0, 1fr); }
a { color: var(--link); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 2px; }
nav { grid-area: 1 / 1 / span 2; position: sticky; top: 0; height: 100vh; overflow-y: auto;
  padding: .3rem 1rem 3rem 1.5rem; border-right: 1px solid var(--line); background: var(--shade); font-size: .85rem; }
nav div { padding-top: 1.2rem; break-inside: avoid; }
nav h2 { margin: 0 0 .3rem; font-size: .75rem; letter-spacing: .06em; text-transform: uppercase;
  color: var(--soft); }
nav ul { list-style: none; margin: 0; padding: 0; }
nav a { display: flex; gap: .4rem; padding: .12rem 0; color: var(--ink); text-decoration: none; }
nav a:hover { text-decoration: underline; }
nav .method { flex: 0 0 3.1rem; line-height: 1.95; }
header { padding: 2rem 3rem 0; max-width: 66rem; }
main { grid-column: 2; padding: 0 3rem 6rem; max-width: 66rem; }
header, main, nav { overflow-wrap: anywhere; }
h1 { margin: 0 0 .5rem; font-size: 2rem; }
main h2 { margin: 3.5rem 0 0; padding-bottom: .4rem; border-bottom: 2px solid var(--line); text-transform: capitalize; }
article { padding: 1.6rem 0 1.8rem; border-bottom: 1px solid var(--line); }
article:target { box-shadow: -.8rem 0 0 var(--paper), -1rem 0 0 var(--link); }
h3 { margin: 0; font-size: 1.15rem; }
h4 { margin: 1.2rem 0 .3rem; font-size: .8rem; letter-spacing: .04em; text-transform: uppercase; color: var(--soft); }
p { margin: .5rem 0; max-width: 46rem; }
code, pre { font: .88em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
p code, td code { background: var(--shade); border-radius: 3px; padding: .05em .3em; overflow-wrap: anywhere;
  -webkit-box-decoration-break: clone; box-decoration-break: clone; }
pre { margin: .4rem 0; padding: .8rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; background: var(--shade);
  border: 1px solid var(--line); border-radius: 6px; }
.call { margin: .35rem 0 .6rem; padding-right: .6rem; overflow-wrap: anywhere; font-size: .95rem; }
.method { font: 700 .8em ui-monospace, Menlo, Consolas, monospace; letter-spacing: .03em; }
.get { color: var(--get); } .post { color: var(--post); } .put { color: var(--put); } .delete { color: var(--delete); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .8rem; }
th:first-child { width: 34%; } th:nth-child(2):not(:last-child) { width: 26%; }
th, td { padding: .35rem 1rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: baseline; }
td:first-child { white-space: nowrap; }
.must { color: var(--delete); font-size: .8rem; }
.soft { color: var(--soft); font-size: .9rem; }
.up { display: none; }
@media (max-width: 70rem) {
  body { display: block; }
  header, main { padding: 1.2rem; max-width: none; }
  nav { position: static; height: auto; padding: .3rem 1.2rem 1.2rem; columns: 18rem; border: solid var(--line);
    border-width: 1px 0; }
  main h2 { margin-top: 2rem; }
  .up { display: block; position: sticky; bottom: .8rem; width: fit-content; margin: .8rem 0 0 auto;
    padding: .3rem .8rem; border-radius: 1rem; border: 1px solid var(--line); background: var(--paper);
    font-size: .85rem; } }
/* Three columns do not fit on a telephone: there each field is a paragraph. */
@media (max-width: 44rem) {
  table, tbody, tr, td { display: block; }
  thead { display: none; }
  tr { padding: .45rem 0; border-bottom: 1px solid var(--line); }
  td { padding: 0; border: 0; }
  td:first-child { white-space: normal; }
  td:nth-child(2) { color: var(--soft); } }
@media print { nav, .up { display: none; } body { display: block; } article { break-inside: avoid; } }
"""
