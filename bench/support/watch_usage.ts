import process from "node:process";
import type { Measure } from "./bench.ts";
import { peakRss } from "./sampling.ts";

/** Looks at what the process does from now on, until it is asked. */
export interface Usage {
  /** What was used, a piece of the work and in all. */
  measures(pieces: number, piece: string): readonly Measure[];
}

/** Begins to look. */
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
