/**
 * What a part that has ended must not leave behind: timers, and listeners of
 * signals that live on.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { VirtualClock } from "@coracle/dev";

type Add = typeof AbortSignal.prototype.addEventListener;
type Remove = typeof AbortSignal.prototype.removeEventListener;

/** The folder of the project, as lines of a stack name it. */
const ROOT = new URL("../../", import.meta.url).pathname;
/** Files that stand between a class of the runtime and its caller. */
const BETWEEN = /^(?:tests\/support\/growth|core\/slot_map)\.ts/;
/** Lines of this file in a stack. */
const OF_GUARDS = /^.*\/tests\/support\/leaks\.ts.*$/gm;
const guards = new Set<LeakGuard>();

// Signals are made everywhere, so their class is watched.
const { addEventListener, removeEventListener } = AbortSignal.prototype;
AbortSignal.prototype.addEventListener = function (
  this: AbortSignal,
  ...args: Parameters<Add>
): void {
  addEventListener.apply(this, args);
  for (const guard of guards) guard.added(this, args[1]);
} as Add;
AbortSignal.prototype.removeEventListener = function (
  this: AbortSignal,
  ...args: Parameters<Remove>
): void {
  removeEventListener.apply(this, args);
  for (const guard of guards) guard.removed(this, args[1]);
} as Remove;

/** Line of shipped code that a stack was made in; undefined if it was none. */
export function shippedCaller(stack: string): string | undefined {
  const lines = stack.split("\n").map((line) => line.split(ROOT)[1] ?? "");
  const caller = lines.find((line) =>
    /\.ts\b/.test(line) && !BETWEEN.test(line)
  );
  return caller && /^(?:core|sources|workflows)\//.test(caller)
    ? caller.trim()
    : undefined;
}

/** Watches the listeners of all signals from its creation to its check. */
export class LeakGuard {
  readonly #listeners: Map<AbortSignal, Map<unknown, Error>> = new Map();

  constructor() {
    guards.add(this);
  }

  added(signal: AbortSignal, listener: unknown): void {
    if (signal.aborted) return;
    const listeners = this.#listeners.get(signal) ?? new Map();
    this.#listeners.set(signal, listeners.set(listener, new Error()));
  }

  removed(signal: AbortSignal, listener: unknown): void {
    this.#listeners.get(signal)?.delete(listener);
  }

  /** Asserts that no listener of shipped code and no timer is left. */
  check(clock: VirtualClock): void {
    guards.delete(this);
    const left: string[] = [];
    for (const [signal, listeners] of this.#listeners) {
      if (signal.aborted) continue;
      for (const { stack = "" } of listeners.values()) {
        const caller = shippedCaller(stack.replaceAll(OF_GUARDS, ""));
        if (caller !== undefined) left.push(caller);
      }
    }
    assert.deepEqual(left, [], "a listener is left on a signal");
    assert.equal(clock.pendingTimers, 0, "a timer is left");
  }
}
