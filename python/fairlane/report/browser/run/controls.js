/** The controls of the fabric: colours, jobs, search, the slider with its play button, zoom. */

import { element, labelled } from "report/card";
import { comparison, data } from "report/data";
import { seconds } from "report/format";
import { fabric, jobs, linkCount, linkName } from "report/run/data";
import { reset, show, zoomBy } from "report/run/fabric";
import { choose, chosen, subscribe } from "report/run/state";
import { METRICS, overTime } from "report/run/values";

const STEP_MS = 300; // of the play button
const MOST_HINTS = 20;
const into = document.getElementById("fabric-controls");
const background = jobs.background.flatMap((is, job) => (is ? [job] : []));

const option = (value, text) => element("option", { value, textContent: text });

/** A selection of a job, of all background jobs, or of all jobs. */
function jobSelect(id, key) {
  const select = element("select", { id, onchange: () => {
    const value = select.value === "" ? null : select.value === "background" ? background : [Number(select.value)];
    choose({ [key]: value, ...(data.by_jobs && value ? { metric: "jobs" } : {}) });
  } });
  select.append(option("", "any job"), ...(background.length ? [option("background", "background jobs")] : []));
  select.append(...jobs.name.map((name, job) => option(String(job), name)));
  subscribe([key], () => {
    const value = chosen[key];
    select.value = value === null ? "" : value.length === 1 ? String(value[0]) : "background";
  });
  return select;
}

function metricSelect() {
  const select = element("select", { id: "metric", onchange: () => choose({ metric: select.value }) });
  select.append(...Object.entries(METRICS).map(([name, { label }]) => option(name, label)));
  if (!data.by_jobs) {
    select.lastChild.disabled = true;
    select.lastChild.textContent += " (needs observe.interference_by_port)";
  }
  subscribe(["metric"], () => { select.value = chosen.metric; });
  return select;
}

/** Finds hosts, switches and links by what their names contain. */
function search() {
  const hints = element("datalist", { id: "names" });
  const field = element("input", { id: "find", type: "search", placeholder: "host, switch or link" });
  field.setAttribute("list", "names");
  const vertices = [...fabric.hosts, ...fabric.switches];
  const matching = (text) => {
    const wanted = text.toLowerCase();
    const found = [];
    for (let vertex = 0; vertex < vertices.length && found.length < MOST_HINTS; vertex += 1) {
      if (vertices[vertex].toLowerCase().includes(wanted)) found.push({ name: vertices[vertex], vertex });
    }
    for (let link = 0; link < linkCount && found.length < MOST_HINTS; link += 1) {
      const name = linkName(link);
      if (name.toLowerCase().includes(wanted)) found.push({ name, link });
    }
    return found;
  };
  field.addEventListener("input", () => hints.replaceChildren(...(field.value ? matching(field.value) : []).map(({ name }) => element("option", { value: name }))));
  field.addEventListener("change", () => {
    const exact = vertices.indexOf(field.value);
    const found = exact >= 0 ? { vertex: exact } : field.value ? matching(field.value)[0] : undefined;
    if (!found) return;
    choose({ link: null, vertex: null, ...("link" in found ? { link: found.link } : { vertex: found.vertex }) });
    show(found);
  });
  return element("span", {}, field, hints);
}

function slider() {
  const { samples } = data;
  if (!samples) return [];
  const count = samples.from_s.length;
  const field = element("input", { id: "time", type: "range", min: 0, max: count, value: 0 });
  const play = element("button", { id: "play", type: "button", textContent: "Play" });
  const label = element("output", { id: "time-label" });
  label.htmlFor = "time";
  let timer = null;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
  };
  const draw = () => {
    const { interval } = chosen;
    field.value = interval === null ? 0 : interval + 1;
    label.textContent = interval === null ? "whole run" : `${seconds(samples.from_s[interval])} to ${seconds(samples.to_s[interval])}`;
    field.setAttribute("aria-valuetext", label.textContent);
    field.disabled = play.disabled = !overTime();
    if (!overTime()) {
      label.textContent = "whole run: samples are of one run and do not tell jobs apart";
      stop();
    }
  };
  field.addEventListener("input", () => choose({ interval: Number(field.value) === 0 ? null : Number(field.value) - 1 }));
  play.addEventListener("click", () => {
    if (timer !== null) return stop();
    play.textContent = "Pause";
    timer = setInterval(() => {
      const next = chosen.interval === null ? 0 : chosen.interval + 1;
      if (next >= count) stop();
      else choose({ interval: next });
    }, STEP_MS);
    if (chosen.interval === count - 1) choose({ interval: 0 });
    return undefined;
  });
  subscribe(["interval", "metric", "difference"], draw);
  draw();
  return [element("div", { className: "control time" }, element("label", { htmlFor: "time", textContent: "Time" }), field, play, label)];
}

function zoomButtons() {
  const button = (text, name, click) => {
    const made = element("button", { type: "button", textContent: text, onclick: click });
    made.setAttribute("aria-label", name);
    return made;
  };
  return element("span", { className: "zoom" }, button("+", "Zoom in", () => zoomBy(0.7)), button("−", "Zoom out", () => zoomBy(1.4)), button("Reset", "Reset: show the whole fabric", reset));
}

export function startControls() {
  into.append(labelled("Colour of links", metricSelect()), labelled("Victim", jobSelect("victim", "victim")), labelled("Aggressor", jobSelect("aggressor", "aggressor")));
  into.append(labelled("Find", search()), zoomButtons());
  if (comparison) {
    const box = element("input", { id: "difference", type: "checkbox", onchange: () => choose({ difference: box.checked }) });
    into.append(element("label", { className: "control check" }, box, `Difference to ${comparison.meta.name}`));
  }
  into.append(...slider());
  const words = document.getElementById("fabric-note");
  const kept = data.by_jobs?.kept ?? 1;
  if (kept < 0.9995) words.append(` Queueing delay between jobs: the largest cells, with ${(100 * kept).toFixed(1)}% of all delay.`);
  if (data.samples?.together > 1) words.append(` An interval of the slider is ${data.samples.together} of the run's.`);
  if (comparison?.links_apart) words.append(` ${comparison.links_apart} of ${linkCount} links are only in this run.`);
}
