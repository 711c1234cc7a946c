import { test } from "node:test";
import type {
  HttpRequest,
  HttpResponse,
  TransportOptions,
} from "@coracle/operator/client";
import { openHttpTransport } from "../../core/client/transport/open_transport.ts";
import type { HttpTransport } from "../../core/client/transport/transport.ts";

/** Creates a request that reads a path. */
export type Get = (path: string, parts?: Partial<HttpRequest>) => HttpRequest;

/** Short request. */
export const get: Get = (path, parts = {}) => ({
  method: "GET",
  path,
  headers: {},
  ...parts,
});

/** Request with a long response. */
const stream: Get = (path, parts) => ({
  ...get(path, parts),
  mayPause: true,
});

/** Request with a long response, whose reader gives chunks back. */
const borrowing: Get = (path, parts) => ({
  ...stream(path, parts),
  borrowsChunks: true,
});

/**
 * Defines a test for short requests, for those with long responses, and for those
 * whose reader borrows the chunks.
 */
export function testEachRequest(
  title: string,
  run: (get: Get) => Promise<void>,
): void {
  test(title, () => run(get));
  test(`${title}, as a stream`, () => run(stream));
  test(`${title}, borrowed`, () => run(borrowing));
}

/** Reads the complete body of a response. */
export async function text(response: HttpResponse): Promise<string> {
  const decoder = new TextDecoder();
  let whole = "";
  for await (const chunk of response.body) {
    whole += decoder.decode(chunk, { stream: true });
  }
  return whole;
}

/** Reads and parses the complete body of a response. */
export async function json(
  response: HttpResponse,
): Promise<Record<string, unknown>> {
  return JSON.parse(await text(response));
}

/** Runs a test with a transport that is closed at the end. */
export async function withTransport(
  settings: TransportOptions,
  run: (transport: HttpTransport) => Promise<void>,
): Promise<void> {
  const transport = await openHttpTransport(settings);
  try {
    await run(transport);
  } finally {
    await transport.close();
  }
}
