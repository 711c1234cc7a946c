/**
 * What repeated work leaves behind in a program that runs on: entries of maps,
 * sets and lists, and listeners of signals. Nothing private needs to be shown for
 * it, since the classes of the runtime are watched.
 *
 * @module
 */

import { shippedCaller } from "./leaks.ts";

type Add = typeof AbortSignal.prototype.addEventListener;
type Remove = typeof AbortSignal.prototype.removeEventListener;

/** Collections with a limit of their own: old entries make room for new ones. */
const LIMITED = /\/(?:latest_map|lru_cache)\.ts/;
/** Rounds before the first that counts: the first uses fill what stays. */
const WARM_UP = 3;

/** Collection that was added to, or signal that was listened to. */
type Place = Map<unknown, unknown> | Set<unknown> | unknown[] | AbortSignal;

interface Growth {
  /** Entries before the first round that counts, or at the first addition. */
  readonly before: number;
  /** Last round with an addition, and how many had one. */
  last: number;
  touched: number;
  /** Where the entry was added that made it grow by one a round. */
  stack?: string | undefined;
}

// The methods that the tests replace while they count.
const { set, get } = Map.prototype;
const { add } = Set.prototype;
const { push } = Array.prototype;
const { addEventListener, removeEventListener } = AbortSignal.prototype;

/**
 * Lists the places in shipped code that add at least one entry in each round, which
 * is still there after the last round.
 *
 * @param rounds Number of rounds that count.
 * @param round Work that leaves nothing behind. Its number tells names apart.
 */
export async function growthOf(
  rounds: number,
  round: (number: number) => Promise<void>,
): Promise<string[]> {
  const places = new Map<Place, Growth>();
  let current = 0;
  const listeners = new Map<AbortSignal, Set<unknown>>();
  const sizeOf = (place: Place): number =>
    Array.isArray(place)
      ? place.length
      : place instanceof AbortSignal
      ? place.aborted ? 0 : get.call(listeners, place)?.size ?? 0
      : place.size;
  /** Notes an addition, before it is made. */
  const note = (place: Place) => {
    const size = sizeOf(place);
    let growth = get.call(places, place) as Growth | undefined;
    if (growth === undefined) {
      growth = { before: size, last: -1, touched: 0 };
      set.call(places, place, growth);
    }
    if (growth.last !== current) growth.touched++;
    growth.last = current;
    if (size - growth.before === rounds - 1) growth.stack = new Error().stack;
  };
  const watch = () => {
    Map.prototype.set = function (this: Map<unknown, unknown>, ...args) {
      if (this !== places && !this.has(args[0])) note(this);
      return set.apply(this, args) as never;
    };
    Set.prototype.add = function (this: Set<unknown>, value) {
      if (!this.has(value)) note(this);
      return add.call(this, value) as never;
    };
    Array.prototype.push = function (...items) {
      note(this);
      return push.apply(this, items);
    };
    AbortSignal.prototype.addEventListener = function (
      this: AbortSignal,
      ...args: Parameters<Add>
    ) {
      note(this);
      const all = (get.call(listeners, this) ?? new Set()) as Set<unknown>;
      add.call(all, args[1]);
      set.call(listeners, this, all);
      addEventListener.apply(this, args);
    } as Add;
    AbortSignal.prototype.removeEventListener = function (
      this: AbortSignal,
      ...args: Parameters<Remove>
    ) {
      (get.call(listeners, this) as Set<unknown> | undefined)?.delete(args[1]);
      removeEventListener.apply(this, args);
    } as Remove;
  };
  try {
    for (let number = 0; number < WARM_UP; number++) await round(number);
    watch();
    for (current = 0; current < rounds; current++) {
      await round(WARM_UP + current);
    }
  } finally {
    Object.assign(Map.prototype, { set });
    Object.assign(Set.prototype, { add });
    Object.assign(Array.prototype, { push });
    Object.assign(AbortSignal.prototype, {
      addEventListener,
      removeEventListener,
    });
  }
  const found = new Set<string>();
  for (const [place, { before, touched, stack = "" }] of places) {
    if (touched < rounds || sizeOf(place) - before < rounds) continue;
    const caller = shippedCaller(stack);
    if (caller !== undefined && !LIMITED.test(caller)) found.add(caller);
  }
  return [...found];
}
