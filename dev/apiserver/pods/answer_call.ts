/**
 * Answers to `log`, `exec`, `attach` and `portforward` requests for pods, given
 * by the hooks of the server; no container runs. Handles the wire formats
 * (WebSocket channels, log streams), and must not import storage, admission or
 * discovery.
 *
 * @module
 */
import type { UntypedObject } from "@coracle/operator/client";
import { CHANNEL_V4, CHANNEL_V5 } from "@coracle/operator/internal";
import type {
  ResponseStream,
  ServerRequest,
  ServerResponse,
} from "../http/exchange.ts";
import { badRequest } from "../status.ts";
import type { MessageStream } from "../http/message_stream.ts";
import type { HookCall, PodHooks } from "./pod_hooks.ts";
import { servePort, serveProcess } from "./serve_streams.ts";

/** Request to a container of an existing pod. */
export interface ContainerCall {
  readonly http: ServerRequest;
  readonly query: URLSearchParams;
  /** Subresource of the pod: `log`, `exec`, `attach` or `portforward`. */
  readonly subresource: string;
  readonly pod: UntypedObject;
  readonly container: string;
}

/** Answers a request with the hooks of the server; returns undefined if there is no hook for it. */
export function answerCall(
  hooks: PodHooks,
  call: ContainerCall,
): ServerResponse | undefined {
  const { subresource, query, pod, container } = call;
  const target = { pod, container };
  switch (subresource) {
    case "log": {
      const { logs } = hooks;
      return logs && {
        status: 200,
        headers: { "content-type": "text/plain" },
        body: logStream(logs, { ...target, ...logOptions(query) }),
      };
    }
    case "exec":
    case "attach": {
      const run = hooks[subresource];
      const process = {
        ...target,
        command: query.getAll("command"),
        tty: query.get("tty") === "true",
      };
      return run &&
        upgraded(call, (stream) => serveProcess(stream, process, run));
    }
    default: {
      const { portForward } = hooks;
      const port = Number(query.get("ports"));
      return portForward &&
        upgraded(
          call,
          (stream) => servePort(stream, { ...target, port }, portForward),
        );
    }
  }
}

/** Response that upgrades the connection to a WebSocket. */
function upgraded(
  { http }: ContainerCall,
  serve: (stream: MessageStream) => Promise<void>,
): ServerResponse {
  const offered = (http.headers["sec-websocket-protocol"] ?? "")
    .split(",").map((name) => name.trim());
  const protocol = [CHANNEL_V5, CHANNEL_V4].find((name) =>
    offered.includes(name)
  );
  if (http.headers.upgrade?.toLowerCase() !== "websocket" || !protocol) {
    throw badRequest("Upgrade request required");
  }
  return {
    status: 101,
    headers: {},
    body: new Uint8Array(),
    upgrade: { protocol, serve },
  };
}

function logOptions(
  query: URLSearchParams,
): Omit<HookCall<"logs">, "pod" | "container" | "signal"> {
  const number = (name: string) =>
    query.has(name) ? Number(query.get(name)) : undefined;
  return {
    follow: query.get("follow") === "true",
    previous: query.get("previous") === "true",
    tailLines: number("tailLines"),
    sinceSeconds: number("sinceSeconds"),
  };
}

function logStream(
  logs: NonNullable<PodHooks["logs"]>,
  call: Omit<HookCall<"logs">, "signal">,
): ResponseStream {
  return {
    start(writer) {
      const left = new AbortController();
      const encoder = new TextEncoder();
      const write = async () => {
        for await (const text of logs({ ...call, signal: left.signal })) {
          if (left.signal.aborted) return;
          writer.write(encoder.encode(text));
        }
      };
      write().then(() => writer.end(), () => writer.destroy());
      return () =>
        left.abort(new Error("Cannot continue: the caller has disconnected"));
    },
  };
}
