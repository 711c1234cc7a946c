import type { Clock, Timer } from "@coracle/operator/client";

/** Sources of the replaced globals: time, random numbers and `fetch`. */
export interface GlobalSources {
  /** Returns the clock of the current simulated process. */
  readonly clock: () => Clock;
  readonly random: () => number;
  readonly uuid: () => string;
  readonly fetch: (request: Request) => Promise<Response>;
  /** Called when work outside the simulation begins, and again when it ends. */
  readonly working: (change: 1 | -1) => void;
}

/** First id of a simulated timer: those of the runtime do not get as far. */
const FIRST_ID = 2 ** 40;

/**
 * Replaces the time, the timers, the random numbers and `fetch` of the process
 * by those of a simulation.
 *
 * `setImmediate`, `queueMicrotask` and modules of the runtime such as
 * `node:crypto` stay as they are.
 *
 * @returns A function that restores them.
 */
export function replaceGlobals(sources: GlobalSources): () => void {
  const { clock, random, uuid } = sources;
  const wallTime = () => Math.floor(clock().wallTime());
  const timers = new Map<number, Timer>();
  let lastId = FIRST_ID;
  const setTimer = (
    callback: (...values: unknown[]) => void,
    delay: number | undefined,
    { repeats, values }: { repeats: boolean; values: readonly unknown[] },
  ) => {
    const id = ++lastId;
    const wait = Math.max(Number(delay) || 0, 1);
    const { setTimer } = clock();
    const arm = () => {
      const timer = setTimer(() => {
        if (repeats) arm();
        else timers.delete(id);
        callback(...values);
      }, wait);
      timers.set(id, timer);
    };
    arm();
    const handle = {
      ref: () => handle,
      unref: () => handle,
      hasRef: () => true,
      refresh() {
        timers.get(id)?.cancel();
        arm();
        return handle;
      },
      close: () => clear(id),
      [Symbol.toPrimitive]: () => id,
      [Symbol.dispose]: () => clear(id),
    };
    return handle;
  };
  const { clearTimeout: clearReal } = globalThis;
  const clear = (handle: unknown) => {
    const id = Number(handle ?? 0);
    // What is outside of the simulation, such as a connection, has real timers.
    if (!(id > FIRST_ID)) {
      clearReal(handle as Parameters<typeof clearReal>[0]);
      return;
    }
    timers.get(id)?.cancel();
    timers.delete(id);
  };
  type Callback = (...values: unknown[]) => void;
  const restore = [
    replace(globalThis, {
      Date: worldDate(wallTime),
      setTimeout: (callback: Callback, delay?: number, ...values: unknown[]) =>
        setTimer(callback, delay, { repeats: false, values }),
      setInterval: (callback: Callback, delay?: number, ...values: unknown[]) =>
        setTimer(callback, delay, { repeats: true, values }),
      clearTimeout: clear,
      clearInterval: clear,
      fetch: async (input: RequestInfo | URL, init?: RequestInit) =>
        await sources.fetch(new Request(input, init)),
    }),
    replace(performance, { now: () => clock().now() }),
    replace(Math, { random }),
    replace(crypto, {
      randomUUID: uuid,
      getRandomValues(array: ArrayBufferView) {
        const { buffer, byteOffset, byteLength } = array;
        const bytes = new Uint8Array(buffer, byteOffset, byteLength);
        for (let at = 0; at < bytes.length; at++) bytes[at] = random() * 256;
        return array;
      },
      subtle: awaited(crypto.subtle, sources.working),
    }),
    replace(AbortSignal, {
      timeout(delay: number) {
        const controller = new AbortController();
        const text = "The operation was aborted due to timeout";
        clock().setTimer(
          () => controller.abort(new DOMException(text, "TimeoutError")),
          delay,
        );
        return controller.signal;
      },
    }),
  ];
  return () => {
    for (const undo of restore) undo();
  };
}

/** Wraps an object to report its calls, which other threads carry out. */
function awaited<T extends object>(
  owner: T,
  working: (change: 1 | -1) => void,
): T {
  return new Proxy(owner, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...values: unknown[]) => {
        working(1);
        const result = Promise.resolve(Reflect.apply(member, target, values));
        const end = () => working(-1);
        result.then(end, end);
        return result;
      };
    },
  });
}

/** Error of a request outside of the cluster without the option `externals`. */
export function unanswered({ method, url }: Request): Error {
  return new Error(
    `Cannot send ${method} ${url}: a check reaches nothing outside of the cluster, so answer it by the option externals, in a file beside the operator's such as operator.check.ts`,
  );
}

/** Why a connection outside of the cluster is held back. */
export function unconnected(address: string): Error {
  return new Error(
    `Cannot connect to ${address}: a check reaches nothing outside of the cluster`,
  );
}

/**
 * Replaces the global `fetch` by `externals`, for work outside the simulation.
 *
 * @returns Function that restores it.
 */
export function replaceFetch(
  externals: ((request: Request) => Promise<Response>) | undefined,
): () => void {
  return replace(globalThis, {
    fetch: async (input: RequestInfo | URL, init?: RequestInit) => {
      const request = new Request(input, init);
      if (externals === undefined) throw unanswered(request);
      return await externals(request);
    },
  });
}

/** Replaces members of an object; returns a function that restores them. */
function replace(owner: object, members: object): () => void {
  const before = Object.getOwnPropertyDescriptors(owner);
  for (const [name, value] of Object.entries(members)) {
    const enumerable = Reflect.get(before, name)?.enumerable ?? true;
    Object.defineProperty(owner, name, {
      value,
      configurable: true,
      writable: true,
      enumerable,
    });
  }
  return () => {
    for (const name of Object.keys(members)) {
      const old: PropertyDescriptor | undefined = Reflect.get(before, name);
      if (old === undefined) Reflect.deleteProperty(owner, name);
      else Object.defineProperty(owner, name, old);
    }
  };
}

function worldDate(wallTime: () => number): DateConstructor {
  return new Proxy(Date, {
    construct: (real, values, target) =>
      Reflect.construct(
        real,
        values.length === 0 ? [wallTime()] : values,
        target,
      ),
    apply: (Real) => new Real(wallTime()).toString(),
    get: (real, name) => name === "now" ? wallTime : Reflect.get(real, name),
  });
}
