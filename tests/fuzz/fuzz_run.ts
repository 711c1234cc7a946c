import { Buffer } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { Agent, request as sendHttp } from "node:http";
import process from "node:process";
import { ApiServer } from "@coracle/dev/apiserver";
import { jsonLogger } from "@coracle/operator/client";
import { Random } from "../soak/random.ts";
import type { Schemas } from "./fuzzed_body.ts";
import {
  describeRequest,
  type FuzzedRequest,
  type FuzzedResource,
  RequestGenerator,
} from "./fuzzed_request.ts";
import { TEMPLATES } from "./templates.ts";

/** Limit of an answer in milliseconds; a watch is cut after its head. */
const ANSWER_LIMIT_MS = 15_000;
/** Requests to one server, before the next one is started. */
const REQUESTS_A_SERVER = 4_000;

/** Log lines of failures that a request may cause, as in kube-apiserver. */
const EXPECTED = /failed calling webhook/;

/** Messages that kube-apiserver 1.36.3 sends with code 500 to the same requests. */
const KNOWN_500 =
  /content is not a list|couldn't get version\/kind|target\.(name: Required|kind: Unsupported) value|resourceVersion should not be set on objects to be created|resourceVersion: Invalid value: .*strconv\.ParseUint|failed to create typed patch object|Object 'apiVersion' is missing/s;

/** Fault that a run has found. */
export interface FuzzFault {
  /** Number of the request in the run, from 0. */
  readonly number: number;
  readonly what: string;
  readonly request: string;
}

/** Results of a run. */
export interface FuzzReport {
  /** Number of answers by status; those of 500 that are expected are named so. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly faults: readonly FuzzFault[];
  /** Memory in use after the first and the last server, in bytes. */
  readonly memory: readonly [first: number, last: number];
}

/**
 * Sends random requests over a socket to an API server, and collects errors that
 * the server logs or nobody handles, and answers that do not come. The server logs
 * each 500 but those that kube-apiserver answers to the same request.
 */
export async function fuzz(options: {
  readonly requests: number;
  readonly seed: number;
  /** Number of the first request that is sent; those before are generated. */
  readonly from?: number | undefined;
  /** Called after each server with the number of requests so far. */
  readonly progress?: ((done: number) => void) | undefined;
}): Promise<FuzzReport> {
  const random = new Random(options.seed);
  const statuses: Record<string, number> = {};
  const faults: FuzzFault[] = [];
  const memory: number[] = [];
  let number = 0;
  let current: FuzzedRequest | undefined;
  const fault = (what: string) =>
    faults.push({
      number,
      what,
      request: current === undefined ? "" : describeRequest(current),
    });
  const onRejection = (reason: unknown) =>
    fault(`unhandled: ${(reason as Error)?.stack ?? reason}`);
  process.on("unhandledRejection", onRejection);
  try {
    for (let server = 0; number < options.requests; server++) {
      const target = await FuzzTarget.start({
        seed: options.seed + server,
        isSimulated: server % 2 === 1,
        onError: fault,
      });
      const generator = new RequestGenerator({ random, ...target });
      const end = Math.min(number + REQUESTS_A_SERVER, options.requests);
      for (; number < end; number++) {
        current = generator.next();
        if (number < (options.from ?? 0)) continue;
        const status = await target.send(current);
        statuses[status] = (statuses[status] ?? 0) + 1;
        if (!/^([1-5]\d\d|expected 500)$/.test(status)) {
          fault(`wrong answer: ${status}`);
        }
      }
      await target.stop();
      options.progress?.(number);
      memory.push(usedMemory());
    }
  } finally {
    process.off("unhandledRejection", onRejection);
  }
  return {
    statuses,
    faults,
    memory: [memory[0] ?? 0, memory.at(-1) ?? 0],
  };
}

/** Bytes of objects and buffers in use; what the allocator keeps is not counted. */
function usedMemory(): number {
  (globalThis as { gc?: () => void }).gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Server under test. */
export class FuzzTarget {
  readonly resources: readonly FuzzedResource[];
  readonly schemas: Schemas;
  readonly token: string;
  readonly url: string;
  readonly #server: ApiServer;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 8 });
  readonly #onError: (what: string) => void;

  private constructor(options: {
    readonly resources: readonly FuzzedResource[];
    readonly schemas: Schemas;
    readonly server: ApiServer;
    readonly onError: (what: string) => void;
  }) {
    this.resources = options.resources;
    this.schemas = options.schemas;
    this.#server = options.server;
    this.token = options.server.token;
    this.url = options.server.url;
    this.#onError = options.onError;
  }

  static async start({ seed, isSimulated, onError }: {
    readonly seed: number;
    readonly isSimulated: boolean;
    readonly onError: (what: string) => void;
  }): Promise<FuzzTarget> {
    const server = await ApiServer.start({
      port: 0,
      tls: false,
      seed,
      establishingDelay: 0,
      simulate: isSimulated,
      controllers: isSimulated ? ["*"] : undefined,
      logger: jsonLogger({
        level: "error",
        write: (line) => {
          if (!EXPECTED.test(line)) onError(line.slice(0, 4_000));
        },
      }),
    });
    const { transport } = server;
    const json = async (
      method: "GET" | "POST",
      path: string,
      body?: object,
      // deno-lint-ignore no-explicit-any -- answers of any form
    ): Promise<any> => {
      const response = await transport.send({
        method,
        path,
        headers: { "content-type": "application/json" },
        body: body && JSON.stringify(body),
      });
      const parts: Uint8Array[] = [];
      for await (const chunk of response.body) parts.push(chunk.slice());
      return JSON.parse(Buffer.concat(parts).toString());
    };
    const [definition] = TEMPLATES["CustomResourceDefinition"] ?? [];
    const { kind, message } = await json(
      "POST",
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      {
        apiVersion: "apiextensions.k8s.io/v1",
        kind: "CustomResourceDefinition",
        ...definition,
      },
    );
    if (kind === "Status") throw new Error(message);
    const resources: FuzzedResource[] = [];
    const schemas = new Map<string, unknown>();
    const { paths } = await json("GET", "/openapi/v3");
    for (
      const [path, { serverRelativeURL }] of Object.entries(paths) as [
        string,
        { readonly serverRelativeURL: string },
      ][]
    ) {
      if (!/^apis?\/.*v\d/.test(path)) continue;
      const { components } = await json("GET", serverRelativeURL);
      for (const [name, schema] of Object.entries(components?.schemas ?? {})) {
        schemas.set(name, schema);
      }
      const list = await json("GET", `/${path}`);
      for (const { name, kind, namespaced } of list.resources ?? []) {
        if (name.includes("/")) continue;
        resources.push({ prefix: `/${path}`, plural: name, kind, namespaced });
      }
    }
    const ordered = resources.toSorted((a, b) =>
      `${a.prefix}/${a.plural}` < `${b.prefix}/${b.plural}` ? -1 : 1
    );
    const boats = ordered.filter(({ kind }) => kind === "Boat");
    return new FuzzTarget({
      // Custom resources have the most code of their own.
      resources: [...ordered, ...boats, ...boats, ...boats],
      schemas,
      server,
      onError,
    });
  }

  /** Sends a request; gives the status, or what happened instead. */
  send({ method, path, headers, body }: FuzzedRequest): Promise<string> {
    const { port } = new URL(this.url);
    return new Promise((resolve) => {
      const end = (result: string) => {
        clearTimeout(limit);
        resolve(result);
      };
      const limit = setTimeout(() => {
        end("hangs");
        sent.destroy();
      }, ANSWER_LIMIT_MS);
      const onResponse = (response: IncomingMessage) => {
        const status = String(response.statusCode);
        let failure = "";
        response.on("data", (chunk: Uint8Array) => {
          if (status === "500") failure += Buffer.from(chunk).toString();
        });
        response.on("error", () => end("broken"));
        for (const event of ["end", "close"]) {
          response.on(event, () => {
            if (status !== "500") end(status);
            // The reason is in the body of the answer to the same GET only.
            else if (method === "HEAD") {
              if (event === "close") return;
              this.send({ method: "GET", path, headers, body }).then(end);
            } else if (KNOWN_500.test(failure)) end("expected 500");
            else end(`500 ${failure.slice(0, 400)}`);
          });
        }
        if (isEndless(response)) {
          // Its events come later, if at all.
          setImmediate(() => {
            end(status);
            response.destroy();
          });
        }
      };
      const sent = sendHttp({
        host: "127.0.0.1",
        port,
        method,
        path,
        agent: this.#agent,
        headers: {
          ...headers,
          ...body && { "content-length": body.length },
        },
      }, onResponse);
      sent.on("error", (error) => end(error.message));
      sent.end(body);
    });
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    await this.#server.stop();
  }
}

function isEndless({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] === "chunked" &&
    headers["content-encoding"] === undefined;
}
