import type { UntypedObject } from "@coracle/operator/client";

/** Call to a container; lasts until the caller disconnects. */
export interface PodCall {
  /** Stored pod. */
  readonly pod: UntypedObject;
  /** Name of the container: the requested one, or the first of the pod. */
  readonly container: string;
  /** Signal that is aborted when the caller disconnects. */
  readonly signal: AbortSignal;
}

/** Process in a container, from the view of the container. */
export interface PodProcess extends PodCall {
  /** Program and arguments; empty for `attach`, where the process already runs. */
  readonly command: readonly string[];
  /** Whether the process has a terminal, whose sizes `sizes` then yields. */
  readonly tty: boolean;
  /** Standard input; ends when the caller closes it or disconnects. */
  readonly stdin: AsyncIterable<Uint8Array>;
  /** Sizes of the caller's terminal in characters, one for each resize. */
  readonly sizes: AsyncIterable<
    { readonly width: number; readonly height: number }
  >;
  /** Writes to the standard output; resolves when the caller can accept more. */
  write(output: string | Uint8Array): Promise<void>;
  /** Writes to the standard error output. */
  writeError(output: string | Uint8Array): Promise<void>;
}

/**
 * Hooks in place of the containers of an embedded API server, which runs no
 * containers. Without a hook, requests fail as if no node could be reached; if a
 * hook throws, they fail as with a failing container runtime.
 *
 * @example A container that answers
 * ```ts
 * import { ApiServer } from "@coracle/dev/apiserver";
 * import { Pod } from "@coracle/operator/kinds";
 *
 * const server = await ApiServer.start({
 *   port: false,
 *   pods: {
 * async exec({ command, write }) {
 *   await write(`Received ${command.join(" ")}`);
 *   return 0;
 * },
 *   },
 * });
 * const key = { namespace: "default", name: "web" };
 * const containers = [{ name: "main", image: "web" }];
 * await server.client.create(Pod, { metadata: key, spec: { containers } });
 * const program = await server.client.exec(key, { command: ["hello"] });
 * const { stdout } = await program.output();
 * if (stdout !== "Received hello") throw new Error("Unexpected output");
 * await server.stop();
 * ```
 */
export interface PodHooks {
  /**
   * Runs the main process of a container of a pod on a simulated node; returns
   * its exit code when it ends. The process is ready immediately, unless it
   * calls `ready`. With the result `undefined`, as without a hook, the
   * container runs until it is stopped or, without the restart policy Always,
   * ends with 0 after a second.
   */
  readonly run?:
    | ((
      process: PodCall & {
        /** Number of restarts of the container. */
        readonly restarts: number;
        /** Sets whether the container is ready. */
        ready(isReady: boolean): void;
      },
    ) => Promise<number> | number | undefined)
    | undefined;
  /** Yields the log of a container in chunks of any size. */
  readonly logs?:
    | ((
      call: PodCall & {
        /** Whether to send new lines until the caller disconnects. */
        readonly follow: boolean;
        /** Maximum number of lines, counted from the end; all lines if undefined. */
        readonly tailLines: number | undefined;
        /** Maximum age of the lines in seconds; all lines if undefined. */
        readonly sinceSeconds: number | undefined;
        /** Whether the log of the previous, terminated container is requested. */
        readonly previous: boolean;
      },
    ) => Iterable<string> | AsyncIterable<string>)
    | undefined;
  /** Runs a command; returns its exit code. */
  readonly exec?: ((process: PodProcess) => Promise<number>) | undefined;
  /** Attaches to the running process; returns its exit code when it ends. */
  readonly attach?: ((process: PodProcess) => Promise<number>) | undefined;
  /** Serves a connection to a port; the connection closes when the promise resolves. */
  readonly portForward?:
    | ((
      port: PodCall & {
        /** Port number. */
        readonly port: number;
        /** Data that the caller sends. */
        readonly data: AsyncIterable<Uint8Array>;
        /** Sends data to the caller; resolves when the caller can accept more. */
        write(data: string | Uint8Array): Promise<void>;
      },
    ) => Promise<void>)
    | undefined;
}

/** Argument of a pod hook. */
export type HookCall<H extends keyof PodHooks> = Parameters<
  NonNullable<PodHooks[H]>
>[0];
