import { ApiServer, type ApiServerOptions } from "@coracle/dev/apiserver";
import type { HttpRequest } from "@coracle/operator/client";

/** Answer of a request, with its body parsed. */
export interface SessionAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  // deno-lint-ignore no-explicit-any -- tests look at whatever is there
  readonly body: any;
}

/** Sends requests to a server without socket. */
export class ApiSession {
  readonly server: ApiServer;

  constructor(server: ApiServer) {
    this.server = server;
  }

  /** Sends a request as the administrator. */
  async send(
    method: HttpRequest["method"],
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<SessionAnswer> {
    const { text, ...answer } = await this.sendText(
      method,
      path,
      body === undefined ? undefined : JSON.stringify(body),
      headers,
    );
    return { ...answer, body: JSON.parse(text) };
  }

  /** Sends a text as the administrator; the answer is read to its end. */
  async sendText(
    method: HttpRequest["method"],
    path: string,
    body?: string,
    headers: Record<string, string> = {},
  ): Promise<Omit<SessionAnswer, "body"> & { readonly text: string }> {
    const response = await this.server.transport.send({
      method,
      path,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        "user-agent": "tester/1",
        ...headers,
      },
      body,
    });
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of response.body) {
      text += decoder.decode(chunk, { stream: true });
    }
    const { status } = response;
    return { status, headers: response.headers, text };
  }

  /** Sends a merge patch. */
  patch(path: string, body: unknown): Promise<SessionAnswer> {
    return this.send("PATCH", path, body, {
      "content-type": "application/merge-patch+json",
    });
  }

  /** Creates an object; throws an error if it is refused. */
  // deno-lint-ignore no-explicit-any -- tests look at whatever is there
  async create(path: string, object: unknown): Promise<any> {
    const { status, body } = await this.send("POST", path, object);
    if (status !== 201) {
      throw new Error(`Cannot create an object: received ${body.message}`);
    }
    return body;
  }
}

/** Runs a test with a server without socket, which is stopped afterwards. */
export async function withSession(
  run: (session: ApiSession) => Promise<void>,
  options: ApiServerOptions = {},
): Promise<void> {
  const server = await ApiServer.start({
    port: false,
    establishingDelay: 0,
    ...options,
  });
  try {
    await run(new ApiSession(server));
  } finally {
    await server.stop();
  }
}
