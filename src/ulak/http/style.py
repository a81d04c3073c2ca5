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
  display: grid; grid-template-columns: 19rem minmax(0, 1fr); }
a { color: var(--link); text-decoration: none; }
a:hover, a:focus { text-decoration: underline; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.5rem 1rem 3rem 1.5rem;
  border-right: 1px solid var(--line); background: var(--shade); font-size: .85rem; }
nav h2 { margin: 1.2rem 0 .3rem; font-size: .75rem; letter-spacing: .06em; text-transform: uppercase;
  color: var(--soft); }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li { padding: .12rem 0; }
nav li a { color: var(--ink); }
main { padding: 2rem 3rem 6rem; max-width: 66rem; }
h1 { margin: 0 0 .5rem; font-size: 2rem; }
main h2 { margin: 3.5rem 0 0; padding-bottom: .4rem; border-bottom: 2px solid var(--line); text-transform: capitalize; }
article { padding: 1.6rem 0 1.8rem; border-bottom: 1px solid var(--line); }
article:target { background: var(--shade); box-shadow: -1rem 0 0 var(--shade), 1rem 0 0 var(--shade); }
h3 { margin: 0; font-size: 1.15rem; }
h4 { margin: 1.2rem 0 .3rem; font-size: .8rem; letter-spacing: .04em; text-transform: uppercase; color: var(--soft); }
p { margin: .5rem 0; max-width: 46rem; }
code, pre { font: .88em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
p code, td code { background: var(--shade); border-radius: 3px; padding: .05em .3em; overflow-wrap: anywhere; }
pre { margin: .4rem 0; padding: .8rem 1rem; overflow-x: auto; background: var(--shade); border: 1px solid var(--line);
  border-radius: 6px; }
.call { margin: .35rem 0 .6rem; overflow-wrap: anywhere; font-size: .95rem; }
.method { font: 700 .8em ui-monospace, Menlo, Consolas, monospace; letter-spacing: .03em; }
.get { color: var(--get); } .post { color: var(--post); } .put { color: var(--put); } .delete { color: var(--delete); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .8rem; }
th, td { padding: .35rem 1rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td:first-child { white-space: nowrap; }
.must { color: var(--delete); font-size: .8rem; margin-left: .35rem; }
.soft { color: var(--soft); font-size: .9rem; }
@media (max-width: 60rem) { body { display: block; } main { padding: 1.2rem; } td:first-child { white-space: normal; }
  nav { position: static; height: auto; max-height: 40vh; border-right: 0; border-bottom: 1px solid var(--line); } }
@media print { nav { display: none; } body { display: block; } article { break-inside: avoid; } }
"""
