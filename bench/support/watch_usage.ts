import process from "node:process";
import type { Measure } from "./bench.ts";
import { peakRss } from "./sampling.ts";

/** Resource usage of the process since a start. */
export interface Usage {
  /** Measures per piece of work and in total. */
  measures(pieces: number, piece: string): readonly Measure[];
}

/** Starts measuring the process. */
export function watchUsage(): Usage {
  let longest = 0;
  let last = performance.now();
  let looking = true;
  const turn = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (looking) setTimeout(turn, 1);
  };
  turn();
  const start = performance.now();
  const before = process.cpuUsage();
  return {
    measures(pieces, piece) {
      const { user, system } = process.cpuUsage(before);
      const wall = performance.now() - start;
      looking = false;
      turn();
      return [
        { unit: `µs CPU/${piece}`, value: (user + system) / pieces },
        { unit: `µs/${piece}`, value: wall * 1000 / pieces },
        { unit: "ms longest block", value: longest },
        peakRss(),
      ];
    },
  };
}
