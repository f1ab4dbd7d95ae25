/** The cards of a job log's schedules: jobs over time, allocators, the machine over time, waits and slowdowns. */

import { startAllocators } from "report/schedule/allocators";
import { startDistributions } from "report/schedule/distributions";
import { startGantt } from "report/schedule/gantt";
import { startLoad } from "report/schedule/load";
import { startSizes } from "report/schedule/sizes";
import { startVerified } from "report/schedule/verified";

export function start() {
  for (const one of [startGantt, startAllocators, startLoad, startDistributions, startSizes, startVerified]) one();
}
