import type { UntypedObject } from "../../core/api/object.ts";

/** Which container somebody talks to, and for how long. */
export interface PodCall {
  /** The pod, as it is stored. */
  readonly pod: UntypedObject;
  /** The container: the one that was named, or the first. */
  readonly container: string;
  /** Fires when the caller has left. */
  readonly signal: AbortSignal;
}

/** A request for the log of a container. */
export interface PodLogCall extends PodCall {
  /** Whether to go on until the caller leaves. */
  readonly follow: boolean;
  /** Only so many lines from the end; all when absent. */
  readonly tailLines: number | undefined;
  /** Only lines of the last so many seconds; all when absent. */
  readonly sinceSeconds: number | undefined;
  /** Whether the container that ran before is meant. */
  readonly previous: boolean;
}

/** A program in a container, as the pod sees it. */
export interface PodProcess extends PodCall {
  /** The program and its arguments; empty where one runs already. */
  readonly command: readonly string[];
  /** Whether it has a terminal, whose sizes come in `sizes`. */
  readonly tty: boolean;
  /** What the caller sends; it ends when the caller says so, or leaves. */
  readonly stdin: AsyncIterable<Uint8Array>;
  /** The sizes of the caller's terminal, in characters. */
  readonly sizes: AsyncIterable<
    { readonly width: number; readonly height: number }
  >;
  /** Writes to the output; fulfilled when the caller can take more. */
  write(output: string | Uint8Array): Promise<void>;
  /** Writes to the error output. */
  writeError(output: string | Uint8Array): Promise<void>;
}

/** A connection to a port of a pod, as the pod sees it. */
export interface PodPort extends PodCall {
  /** The port. */
  readonly port: number;
  /** What the caller sends. */
  readonly data: AsyncIterable<Uint8Array>;
  /** Sends to the caller; fulfilled when it can take more. */
  write(data: string | Uint8Array): Promise<void>;
}

/**
 * What runs in the pods of an embedded API server, which runs none itself. What
 * is absent answers as a cluster does whose nodes are gone; what throws answers
 * as a container runtime that cannot.
 *
 * @example A container that answers
 * ```ts
 * import { ApiServer } from "@coracle/operator/apiserver";
 * import { Pod } from "@coracle/operator/kinds";
 *
 * const server = await ApiServer.start({
 *   port: false,
 *   pods: {
 *     async exec({ command, write }) {
 *       await write(`You said ${command.join(" ")}`);
 *       return 0;
 *     },
 *   },
 * });
 * const key = { namespace: "default", name: "web" };
 * const containers = [{ name: "main", image: "web" }];
 * await server.client.create(Pod, { metadata: key, spec: { containers } });
 * const program = await server.client.exec(key, { command: ["hello"] });
 * const { stdout } = await program.output();
 * if (stdout !== "You said hello") throw new Error("Unexpected output");
 * await server.stop();
 * ```
 */
export interface PodHooks {
  /** Gives the log of a container, in pieces of any size. */
  readonly logs?:
    | ((call: PodLogCall) => Iterable<string> | AsyncIterable<string>)
    | undefined;
  /** Runs a command; gives its exit code. */
  readonly exec?: ((process: PodProcess) => Promise<number>) | undefined;
  /** Joins the program that runs; gives its exit code when it ends. */
  readonly attach?: ((process: PodProcess) => Promise<number>) | undefined;
  /** Serves one connection to a port; it is closed when this is fulfilled. */
  readonly portForward?: ((port: PodPort) => Promise<void>) | undefined;
}
