import { stripVTControlCharacters } from "node:util";
import { readFile } from "node:fs/promises";
import { Client, loadConfig, parseKey } from "@coracle/operator/client";
import type { OperatorHandle } from "@coracle/operator/core";
import { writeSecretFile } from "../serving.ts";
import {
  jsonAnswer,
  refusal,
  serveLocally,
  TOKEN_HEADER,
} from "./local_server.ts";
import type { WindowSource } from "./window_server.ts";

/** Number of log lines that are kept. */
const MAX_LINES = 2_000;
const TIMEOUT_MS = 5_000;

/** Latest log lines of a process. */
export class LatestLines {
  readonly #lines: string[] = [];

  /** Adds a line, which may be coloured. */
  add(text: string): void {
    this.#lines.push(stripVTControlCharacters(text).trimEnd());
    if (this.#lines.length > MAX_LINES) this.#lines.shift();
  }

  /** Lines that contain the name of an object. */
  about(object: string): readonly string[] {
    return this.#lines.filter((line) =>
      line.split(/[\s"]+/).some((word) => word === object)
    );
  }
}

/** Dependencies of {@linkcode serveLink}. */
export interface LinkDeps {
  readonly operators: () => readonly OperatorHandle[];
  readonly lines: LatestLines;
  /** Kubeconfig for pausing objects. */
  readonly kubeconfig: string;
  /** File for the address of the server, which the page reads. */
  readonly file: string;
}

/**
 * Serves the operators of this process to the page, which another process
 * serves and which stays open when `coracle dev --watch` restarts the
 * operators.
 */
export async function serveLink(
  { operators, lines, kubeconfig, file }: LinkDeps,
): Promise<{ close(): Promise<void> }> {
  const server = await serveLocally({
    port: 0,
    // A main module is imported when the process has nothing else to do.
    keepAlive: false,
    async answer({ path, query, body }) {
      if (path === "/state") {
        return jsonAnswer(operators().map((operator) => operator.inspect()));
      }
      if (path === "/object") {
        const key = query.get("object") ?? "";
        return jsonAnswer({
          histories: operators().flatMap((operator) => operator.why(key)),
          logs: lines.about(key),
        });
      }
      if (path !== "/act") return refusal(404, "Cannot answer: unknown path");
      await act(operators(), kubeconfig, Object(body));
      return jsonAnswer({});
    },
  });
  const { port, token } = server;
  await writeSecretFile(file, JSON.stringify({ port, token }));
  return server;
}

/** Reconciles, pauses or resumes an object. */
async function act(
  operators: readonly OperatorHandle[],
  kubeconfig: string,
  { action, controller: name, object }: Readonly<Record<string, unknown>>,
): Promise<void> {
  const controller = operators.map((operator) =>
    operator.controllerNamed(String(name))
  ).find((found) => found !== undefined);
  if (controller === undefined || typeof object !== "string") {
    throw new TypeError(
      "Cannot act: the request must name a controller and an object",
    );
  }
  if (action === "reconcile") return controller.trigger(object);
  const { pauseAnnotation } = controller.settings;
  if (typeof pauseAnnotation !== "string") {
    throw new TypeError(`Cannot pause ${object}: ${name} has no annotation`);
  }
  if (action !== "pause" && action !== "resume") {
    throw new TypeError(
      `Cannot act: the action must be reconcile, pause or resume: received ${
        JSON.stringify(action)
      }`,
    );
  }
  const client = new Client(await loadConfig({ kubeconfig }));
  try {
    await client.patch(controller.kind, parseKey(object), {
      metadata: {
        annotations: { [pauseAnnotation]: action === "pause" ? "true" : null },
      },
    });
  } finally {
    await client.close();
  }
}

/** Operators of another process, as the source of the page. */
export function linkedOperators(file: string): WindowSource {
  const ask = async (path: string, body?: unknown): Promise<unknown> => {
    const text = await readFile(file, "utf8").catch(() => {
      throw new Error("Cannot show the operator: it is starting");
    });
    const { port, token } = JSON.parse(text);
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { [TOKEN_HEADER]: token },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).catch(() => {
      throw new Error("Cannot show the operator: it is not running");
    });
    if (response.ok) return await response.json();
    throw new Error((await response.text()).trim());
  };
  return {
    state: () => ask("/state") as ReturnType<WindowSource["state"]>,
    object: (key) =>
      ask(`/object?object=${encodeURIComponent(key)}`) as ReturnType<
        WindowSource["object"]
      >,
    async act(request) {
      await ask("/act", request);
    },
  };
}
