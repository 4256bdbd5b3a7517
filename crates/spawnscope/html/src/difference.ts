// Makes the page of `spawnscope diff -o` interactive. Its tables and its flame graph are already in the page.

import { makeFilterable, makeSortable } from "./sortable";
import { makeZoomable } from "./zoomable";

const tables = [...document.querySelectorAll<HTMLTableElement>("table[data-sortable]")];
tables.forEach(makeSortable);
makeFilterable(tables);
makeZoomable(document.querySelector<SVGSVGElement>("svg.difference"));
document.documentElement.dataset.ready = "";
