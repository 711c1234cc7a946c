import { performance } from "node:perf_hooks";
import process from "node:process";
import { setTimeout } from "node:timers/promises";
import type { HttpRequest } from "../../core/client/transport/transport.ts";

const [DELAY = "0", RESOURCES = "."] =
  process.env["CORACLE_TEST_LATE"]?.split(":") ?? [];
const DELAY_MS = Number(DELAY);
const LATE = new RegExp(RESOURCES);

/**
 * Chunks of a watch, late by the milliseconds of the environment variable
 * `CORACLE_TEST_LATE`: `40:configmaps|secrets` delays the watches whose path
 * matches. A test that relies on the order of two watches then fails.
 *
 * @param request The watch.
 * @param body Chunks as they arrive.
 */
export function lateChunks(
  { path, signal }: HttpRequest,
  body: AsyncIterable<Uint8Array>,
): AsyncIterable<Uint8Array> {
  return DELAY_MS > 0 && LATE.test(path.split("?")[0] ?? "")
    ? delayed(body, signal)
    : body;
}

/** The chunks read ahead, each with its own time of delivery. */
async function* delayed(
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  type Arrival = { readonly due: number; readonly chunk?: Uint8Array };
  const chunks = body[Symbol.asyncIterator]();
  const read = async (): Promise<Arrival> => {
    const { done, value } = await chunks.next();
    if (done === true) return { due: 0 };
    return { due: performance.now() + DELAY_MS, chunk: value.slice() };
  };
  try {
    for (let next = read();;) {
      const { due, chunk } = await next;
      if (chunk === undefined) return;
      next = read();
      next.catch(() => {});
      const left = Math.max(0, due - performance.now());
      await setTimeout(left, undefined, signal && { signal });
      yield chunk;
    }
  } finally {
    // It waits for the chunk that is being read, if the watch goes on.
    chunks.return?.().catch(() => {});
  }
}
