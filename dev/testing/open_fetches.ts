/**
 * Requests by `fetch` that are in progress. They take real time, during which a
 * virtual clock must not advance past their timeouts.
 *
 * @module
 */
import { nextTurn } from "@coracle/operator/internal";
import type { VirtualClock } from "./virtual_clock.ts";

/** Longest wait for one request in milliseconds: it may never be answered. */
const MAX_WAIT_MS = 500;
/** Number of event-loop turns from an answer to a following request. */
const TURNS_BETWEEN = 4;
const BODY = ["arrayBuffer", "blob", "bytes", "formData", "json", "text"];

const open = new Set<Promise<void>>();
/** Number of clocks that wait for `fetch`; tests may run in parallel. */
let followers = 0;
let restore = () => {};

/**
 * Makes a clock wait for the requests that the process sends by `fetch`.
 *
 * @returns A function that stops the waiting.
 */
export function followFetches(clock: VirtualClock): () => void {
  if (followers++ === 0) restore = replaceFetch();
  const forget = clock.waitFor(answered);
  return () => {
    forget();
    if (--followers === 0) restore();
  };
}

/** Wrapped `fetch` by its wrapper. */
const wrapped: WeakMap<typeof fetch, typeof fetch> = new WeakMap();

function unwrap(given: typeof fetch): typeof fetch {
  const inner = wrapped.get(given);
  return inner === undefined ? given : unwrap(inner);
}

function setFetch(value: typeof fetch): void {
  Object.defineProperty(globalThis, "fetch", {
    value,
    configurable: true,
    enumerable: true,
    writable: true,
  });
}

function replaceFetch(): () => void {
  const isMocked = "get" in (fetchProperty() ?? {});
  const original = unwrap(globalThis.fetch);
  const followed = new Proxy(original, {
    async apply(fetch, self, input): Promise<Response> {
      if (followers === 0) {
        if (globalThis.fetch === followed) setFetch(original);
        return await Reflect.apply(fetch, self, input);
      }
      const response = await follow(
        Reflect.apply(fetch, self, input) as Promise<Response>,
      );
      for (const name of BODY) {
        const read: unknown = Reflect.get(response, name);
        if (typeof read !== "function") continue;
        const value = () => follow(read.call(response) as Promise<unknown>);
        Object.defineProperty(response, name, { value, configurable: true });
      }
      return response;
    },
  });
  wrapped.set(followed, original);
  setFetch(followed);
  return () => restoreFetch(isMocked || globalThis.fetch !== followed);
}

function fetchProperty(): PropertyDescriptor | undefined {
  return Object.getOwnPropertyDescriptor(globalThis, "fetch");
}

/**
 * Takes the wrapper away. A test that has put a mock in its place may still hold
 * the wrapper: what it restores later is unwrapped then.
 */
function restoreFetch(isMocked: boolean): void {
  const current = unwrap(globalThis.fetch);
  if (!isMocked) return setFetch(current);
  Object.defineProperty(globalThis, "fetch", {
    configurable: true,
    enumerable: true,
    get: () => current,
    set: (value: typeof fetch) => setFetch(unwrap(value)),
  });
}

function follow<T>(work: Promise<T>): Promise<T> {
  const entry = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, MAX_WAIT_MS);
    const end = () => {
      clearTimeout(timer);
      resolve();
    };
    work.then(end, end);
  });
  open.add(entry);
  entry.then(() => open.delete(entry));
  return work;
}

/** Waits for the requests in progress, and for requests that follow them. */
async function answered(): Promise<void> {
  while (open.size > 0) {
    await Promise.all(open);
    for (let turn = 0; turn < TURNS_BETWEEN; turn++) await nextTurn();
  }
}
