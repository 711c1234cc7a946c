/** State of a process, which a crash ends. */
export const state = { runs: 0 };
