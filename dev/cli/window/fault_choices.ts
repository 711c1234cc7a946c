import type { Faults } from "../../apiserver/faults/faults.ts";

/** Fault that the page can inject into the server of `coracle dev`. */
interface FaultChoice {
  readonly title: string;
  inject(faults: Faults): void;
}

/** Duration of the faults that last, in milliseconds. */
const LASTS_MS = 10_000;

function lasting(rule: Parameters<Faults["add"]>[0]) {
  return (faults: Faults) => {
    const active = faults.add(rule);
    setTimeout(() => active.remove(), LASTS_MS).unref();
  };
}

/** Faults by their name in a request. */
export const FAULTS: Readonly<Record<string, FaultChoice>> = {
  outage: {
    title: "outage of 10 s",
    inject: (faults) => void faults.restart({ downFor: LASTS_MS }),
  },
  errors: {
    title: "half of the requests fail for 10 s",
    inject: lasting({ effect: { status: 500 }, probability: 0.5 }),
  },
  conflicts: {
    title: "each write conflicts for 10 s",
    inject: lasting({ effect: { conflict: true } }),
  },
  slow: {
    title: "each request takes 2 s for 10 s",
    inject: lasting({ effect: { delay: 2_000 } }),
  },
  watches: {
    title: "all watches break",
    inject: (faults) => void faults.cutWatches(),
  },
  expired: {
    title: "all watches expire (410)",
    inject: (faults) => void faults.expireWatches(),
  },
};
