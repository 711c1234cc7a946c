import { test } from "node:test";
import { openHttpTransport } from "../../core/client/transport/open_transport.ts";
import type {
  HttpRequest,
  HttpResponse,
  HttpTransport,
} from "../../core/client/transport/transport.ts";
import type { TransportOptions } from "../../core/client/transport/transport_options.ts";

/** Makes a request that reads a path. */
export type Get = (path: string, parts?: Partial<HttpRequest>) => HttpRequest;

/** A request whose chunks are for good. */
export const get: Get = (path, parts = {}) => ({
  method: "GET",
  path,
  headers: {},
  ...parts,
});

/** A request of which a transport may make more than of another. */
const borrow: Get = (path, parts) => ({
  ...get(path, parts),
  borrowsChunks: true,
});

/** Tests what holds for both kinds of requests. */
export function testBoth(
  title: string,
  run: (get: Get) => Promise<void>,
): void {
  test(title, () => run(get));
  test(`${title}, with chunks borrowed`, () => run(borrow));
}

/** The whole body of an answer. */
export async function text(response: HttpResponse): Promise<string> {
  const decoder = new TextDecoder();
  let whole = "";
  for await (const chunk of response.body) {
    whole += decoder.decode(chunk, { stream: true });
  }
  return whole;
}

/** The whole body of an answer, parsed. */
export async function json(
  response: HttpResponse,
): Promise<Record<string, unknown>> {
  return JSON.parse(await text(response));
}

/** Runs with a transport that is closed at the end. */
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
