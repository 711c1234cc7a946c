import type { ReflectorSink } from "../../core/cache/watch/reflector.ts";

/** Sink of a reflector that logs each call with its object or version. */
export function loggedSink(log: string[]): ReflectorSink {
  return {
    init: () => void log.push("init"),
    initApply: ({ name }) => void log.push(`initApply ${name}`),
    initRestored: (slot) => void log.push(`initRestored ${slot}`),
    initDone: (version) =>
      Promise.resolve(void log.push(`initDone ${version}`)),
    restored: (version) => void log.push(`restored ${version}`),
    caughtUp: () => void log.push("caughtUp"),
    apply: ({ name }) => void log.push(`apply ${name}`),
    delete: ({ name }) => void log.push(`delete ${name}`),
    bookmark: (version) => void log.push(`bookmark ${version}`),
    flush: () => void log.push("flush"),
  };
}
