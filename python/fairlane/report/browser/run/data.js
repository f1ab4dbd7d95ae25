/** The data of a run's page: jobs, and the fabric with its links. */

import { data } from "report/data";

export const jobs = data.jobs;
export const jobNumber = new Map(jobs.name.map((name, number) => [name, number]));
export const fabric = data.fabric;
export const links = fabric.links;
export const linkCount = links.from.length;
export const hostCount = fabric.hosts.length;

/** The name of a host or switch by its vertex: hosts come first. */
export const vertexName = (vertex) =>
  vertex < hostCount ? fabric.hosts[vertex] : fabric.switches[vertex - hostCount];

/** A link by its sending end, as in the tables: "leaf4 port 7 to spine2". */
export const linkName = (link) =>
  `${vertexName(links.from[link])} port ${links.from_port[link]} to ${vertexName(links.to[link])}`;

/** The jobs on each host. */
export const jobsOfHost = (() => {
  const found = new Map();
  jobs.hosts.forEach((hosts, job) => {
    for (const host of hosts) found.set(host, [...(found.get(host) ?? []), job]);
  });
  return found;
})();
