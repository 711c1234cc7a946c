import { performance } from "node:perf_hooks";
import process from "node:process";
import { ReadableStream, TransformStream } from "node:stream/web";
import { setTimeout } from "node:timers/promises";
import type { HttpRequest } from "@coracle/operator/client";

const [DELAY = "0", RESOURCES = "."] =
  process.env["CORACLE_TEST_LATE"]?.split(":") ?? [];
const DELAY_MS = Number(DELAY);
const LATE = new RegExp(RESOURCES);
if (!(DELAY_MS >= 0)) {
  throw new TypeError(
    `Cannot delay watches: CORACLE_TEST_LATE begins with milliseconds: received "${DELAY}"`,
  );
}

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

/** The chunks, all read ahead, each with its own time of delivery. */
async function* delayed(
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const buffer = new TransformStream<Arrival, Arrival>({}, {
    highWaterMark: Infinity,
  });
  const arrivals = ReadableStream.from(stamped(body)).pipeThrough(buffer);
  for await (const { due, chunk } of arrivals) {
    const left = Math.max(0, due - performance.now());
    await setTimeout(left, undefined, signal && { signal });
    yield chunk;
  }
}

interface Arrival {
  readonly due: number;
  readonly chunk: Uint8Array;
}

async function* stamped(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<Arrival> {
  for await (const chunk of body) {
    yield { due: performance.now() + DELAY_MS, chunk: chunk.slice() };
  }
}
