import { Buffer } from "node:buffer";
import * as platformCrypto from "node:crypto";
import * as platformHttp from "node:http";
import * as platformHttps from "node:https";
import * as platformTimers from "node:timers";
import { setImmediate } from "node:timers/promises";

interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Waits for a delay on the clock of the simulation. */
function wait<T = void>(
  delay?: number,
  value?: T,
  { signal }: WaitOptions = {},
): Promise<T> {
  return new Promise((resolve, reject) => {
    const fail = () => {
      const error = new DOMException("The operation was aborted", "AbortError");
      reject(Object.assign(error, { cause: signal?.reason }));
    };
    if (signal?.aborted) return fail();
    const onAbort = () => {
      clearTimeout(timer);
      fail();
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve(value as T);
    }, delay);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

async function* waitAgain<T = void>(
  delay?: number,
  value?: T,
  options: WaitOptions = {},
): AsyncGenerator<T, void> {
  for (;;) yield await wait(delay, value, options);
}

function randomBytes(
  size: number,
  callback?: (error: null, bytes: Buffer) => void,
): Buffer | undefined {
  const bytes = Buffer.alloc(size);
  crypto.getRandomValues(bytes);
  if (callback === undefined) return bytes;
  queueMicrotask(() => callback(null, bytes));
  return undefined;
}

const promises = {
  setTimeout: wait,
  setInterval: waitAgain,
  setImmediate,
  scheduler: {
    wait: (delay: number, options?: WaitOptions) =>
      wait(delay, undefined, options),
    yield: () => setImmediate(),
  },
};

type Values = readonly unknown[];
/** Creates a function that calls the current value of a global. */
const current =
  (name: "setTimeout" | "setInterval" | "clearTimeout" | "clearInterval") =>
  (...values: Values): unknown =>
    (globalThis[name] as (...values: Values) => unknown)(...values);

/** Copies an HTTP module; `request` and `get` call the current functions. */
function withCurrent(module: object): object {
  const { default: owner } = module as {
    readonly default: Record<"request" | "get", (...values: Values) => unknown>;
  };
  return {
    ...module,
    request: (...values: Values) => owner.request(...values),
    get: (...values: Values) => owner.get(...values),
  };
}

/**
 * Replacements of runtime modules for an operator in a simulation, with its
 * timers, random values and HTTP requests.
 */
export const REPLACED_MODULES: Readonly<Record<string, object>> = {
  "timers": {
    ...platformTimers,
    setTimeout: current("setTimeout"),
    setInterval: current("setInterval"),
    clearTimeout: current("clearTimeout"),
    clearInterval: current("clearInterval"),
    promises,
  },
  "timers/promises": promises,
  "http": withCurrent(platformHttp),
  "https": withCurrent(platformHttps),
  "crypto": {
    ...platformCrypto,
    randomUUID: () => crypto.randomUUID(),
    randomBytes,
    randomInt(minimum: number, maximum?: number) {
      const [from, to] = maximum === undefined
        ? [0, minimum]
        : [minimum, maximum];
      return from + Math.floor(Math.random() * (to - from));
    },
  },
};

/** Global key of the replacements, for generated modules. */
const KEY = Symbol.for("@coracle/operator/replaced-modules");

/**
 * Returns the URL of the module that replaces a module of the runtime;
 * undefined if none does.
 *
 * @param specifier Name of the module, with or without `node:`.
 */
export function replacementOf(specifier: string): string | undefined {
  const name = specifier.replace(/^node:/, "");
  const module = Object.hasOwn(REPLACED_MODULES, name)
    ? REPLACED_MODULES[name]
    : undefined;
  if (module === undefined) return undefined;
  (globalThis as Record<symbol, unknown>)[KEY] = REPLACED_MODULES;
  const names = Object.keys(module).filter((key) => key !== "default");
  const source = `const all = globalThis[Symbol.for(${
    JSON.stringify(KEY.description)
  })][${JSON.stringify(name)}]; export const { ${
    names.join(", ")
  } } = all; export { all as default };`;
  return `data:text/javascript,${encodeURIComponent(source)}`;
}
