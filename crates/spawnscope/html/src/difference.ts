// The page of `spawnscope diff -o`: makes the tables and the flame graph, which are in the page already, answer to clicks and keys.

import { filterable, sortable } from "./sortable";
import { zoomable } from "./zoomable";

const tables = [...document.querySelectorAll<HTMLTableElement>("table[data-sortable]")];
tables.forEach(sortable);
filterable(tables);
zoomable(document.querySelector<SVGSVGElement>("svg.difference"));
document.documentElement.dataset.ready = "";
