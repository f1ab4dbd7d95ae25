/** The controls of the fabric: colours, jobs, search, the slider with its play button, zoom. */

import { button, element, labelled, seconds, select } from "fairlane/kit";
import { choose, chosen, METRICS, subscribe } from "fairlane/state";

const STEP_MS = 300; // of the play button
const MOST_HINTS = 20;

export function startControls(section, { data, geometry, source, vertexName, linkName, show, zoom, reset }) {
  const { jobs, samples, compare } = data;
  const background = jobs.background.flatMap((is, job) => (is ? [job] : []));
  const into = section.querySelector(".controls");

  /** A selection of a job, of all background jobs, or of all jobs. */
  function jobSelect(key) {
    const options = [["", "any job"], ...(background.length ? [["background", "background jobs"]] : []), ...jobs.name.map((name, job) => [String(job), name])];
    const made = select(key, options, (value) => {
      const wanted = value === "" ? null : value === "background" ? background : [Number(value)];
      choose({ [key]: wanted, ...(data.by_jobs && wanted && { metric: "jobs" }) });
    });
    subscribe([key], () => {
      const value = chosen[key];
      made.value = value === null ? "" : value.length === 1 ? String(value[0]) : "background";
    });
    return made;
  }

  function metricSelect() {
    const known = Object.entries(METRICS).filter(([name]) => name !== "rail" || data.fabric.links.rail);
    const made = select("metric", known.map(([name, { label }]) => [name, label]), (metric) => choose({ metric }));
    const option = made.querySelector("[value=jobs]");
    option.disabled = !data.by_jobs;
    if (!data.by_jobs) option.textContent += " (needs observe.interference_by_port)";
    subscribe(["metric"], () => { made.value = chosen.metric; });
    return made;
  }

  /** Finds hosts, switches and links by what their names contain. */
  function search() {
    const hints = element("datalist", { id: "names" });
    const field = element("input", { id: "find", type: "search", placeholder: "host, switch or link" });
    field.setAttribute("list", "names");
    const matching = (text) => {
      const found = [];
      const add = (name, one) => { if (found.length < MOST_HINTS && name.toLowerCase().includes(text.toLowerCase())) found.push({ name, one }); };
      for (let vertex = 0; vertex < geometry.vertexCount; vertex += 1) add(vertexName(vertex), { link: null, vertex });
      for (let link = 0; found.length < MOST_HINTS && link < geometry.linkCount; link += 1) add(linkName(link), { link, vertex: null });
      return found;
    };
    field.addEventListener("input", () => hints.replaceChildren(...(field.value ? matching(field.value) : []).map(({ name }) => element("option", { value: name }))));
    field.addEventListener("change", () => {
      const every = field.value ? matching(field.value) : [];
      const found = every.find(({ name }) => name === field.value) ?? every[0];
      if (!found) return;
      choose(found.one);
      show(found.one);
    });
    return element("span", {}, field, hints);
  }

  function slider() {
    const count = samples.from_s.length;
    const field = element("input", { id: "time", type: "range", min: 0, max: count, value: 0 });
    const play = button("Play", () => (timer === null ? start() : stop()), { id: "play" });
    const label = element("output", { id: "time-label", htmlFor: "time" });
    let timer = null;
    const start = () => {
      play.textContent = "Pause";
      if (chosen.interval === count - 1) choose({ interval: 0 });
      timer = setInterval(() => {
        const next = chosen.interval === null ? 0 : chosen.interval + 1;
        if (next >= count) stop();
        else choose({ interval: next });
      }, STEP_MS);
    };
    const stop = () => {
      clearInterval(timer);
      timer = null;
      play.textContent = "Play";
    };
    const draw = () => {
      const { interval } = chosen;
      const usable = source.overTime();
      if (!usable) stop();
      field.value = interval === null ? 0 : interval + 1;
      const words = interval === null ? "whole run" : `${seconds(samples.from_s[interval])} to ${seconds(samples.to_s[interval])}`;
      field.ariaValueText = label.textContent = usable ? words : "whole run: samples are of one run and do not tell jobs apart";
      field.disabled = play.disabled = !usable;
    };
    field.addEventListener("input", () => choose({ interval: Number(field.value) === 0 ? null : Number(field.value) - 1 }));
    subscribe(["interval", "metric", "difference"], draw);
    draw();
    return element("div", { className: "control time" }, element("label", { htmlFor: "time", textContent: "Time" }), field, play, label);
  }

  const zooms = [["+", "Zoom in", () => zoom(1.4)], ["−", "Zoom out", () => zoom(0.7)], ["Reset", "Reset: show the whole fabric", reset]];
  into.append(labelled("Colour of links", metricSelect()), labelled("Victim", jobSelect("victim")), labelled("Aggressor", jobSelect("aggressor")), labelled("Find", search()));
  into.append(element("span", { className: "zoom" }, ...zooms.map(([text, ariaLabel, click]) => button(text, click, { ariaLabel }))));
  if (compare) {
    const box = element("input", { id: "difference", type: "checkbox", onchange: () => choose({ difference: box.checked }) });
    into.append(element("label", { className: "control check" }, box, `Difference to ${compare.name}`));
  }
  if (samples) into.append(slider());
  const words = section.querySelector(".note");
  const kept = data.by_jobs?.kept ?? 1;
  if (kept < 0.9995) words.append(` Queueing delay between jobs: the largest cells, with ${(100 * kept).toFixed(1)}% of all delay.`);
  if (samples?.together > 1) words.append(` An interval of the slider is ${samples.together} of the run's.`);
  if (compare?.apart) words.append(` ${compare.apart} of ${geometry.linkCount} links are only in this run.`);
}
