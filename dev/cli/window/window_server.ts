import type { Faults } from "../../apiserver/faults/faults.ts";
import { FAULTS } from "./fault_choices.ts";
import {
  jsonAnswer,
  type LocalAnswer,
  type LocalServer,
  refusal,
  serveLocally,
} from "./local_server.ts";
import { PAGE } from "./page.ts";
import { SCRIPT } from "./page_script.ts";
import { STYLE } from "./page_style.ts";

/** Operators that the page in the browser shows. */
export interface WindowSource {
  /** States of the operators, as `Operator.inspect` returns them. */
  state(): Promise<readonly unknown[]>;
  /** History of one object in each controller, and its log lines if known. */
  object(key: string): Promise<{
    readonly histories: readonly unknown[];
    readonly logs?: readonly string[] | undefined;
  }>;
  /** Reconciles or pauses an object; absent if the page is read-only. */
  act?(request: unknown): Promise<void>;
}

/** Options of {@linkcode serveWindow}. */
export interface WindowOptions {
  readonly source: WindowSource;
  /** Port; 0 for any free port. */
  readonly port: number;
  /** Faults of the API server that the page may inject. */
  readonly faults?: Faults | undefined;
}

const FILES: Readonly<Record<string, LocalAnswer>> = {
  "/": { type: "text/html; charset=utf-8", body: PAGE },
  "/page.css": { type: "text/css; charset=utf-8", body: STYLE },
  "/page.js": { type: "text/javascript; charset=utf-8", body: SCRIPT },
};

/** Serves the page that shows running operators; returns its address. */
export async function serveWindow(
  { source, port, faults }: WindowOptions,
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server: LocalServer = await serveLocally({
    port,
    files: FILES,
    async answer({ method, path, query, body }) {
      if (method === "GET" && path === "/api/state") {
        return jsonAnswer({
          dev: source.act !== undefined,
          operators: await source.state(),
        });
      }
      if (method === "GET" && path === "/api/object") {
        return jsonAnswer(await source.object(query.get("object") ?? ""));
      }
      if (method === "POST" && path === "/api/act" && source.act) {
        const { action, fault } = Object(body);
        if (action !== "fault") await source.act(body);
        else if (faults && Object.hasOwn(FAULTS, fault)) {
          FAULTS[fault]?.inject(faults);
        } else return refusal(400, `Cannot inject a fault: unknown "${fault}"`);
        return jsonAnswer({});
      }
      return refusal(404, "Cannot answer: unknown path");
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/#${server.token}`,
    close: () => server.close(),
  };
}
