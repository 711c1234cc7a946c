/**
 * What is asked of a single pod beside its object, as plain values.
 *
 * @module
 */
import { objectPath, type ResolvedKind } from "../../api/kind.ts";
import type { ObjectKey } from "../../api/object_key.ts";
import { checkOptions, type OptionRules } from "../../api/options.ts";
import type { ApiStreamRequest } from "../authenticate.ts";
import { type ApiRequest, describe, withQuery } from "../request.ts";
import type { RequestOptions } from "../request_options.ts";
import { CHANNEL_V4, CHANNEL_V5 } from "./channel_stream.ts";

const POD: ResolvedKind = {
  group: "",
  version: "v1",
  kind: "Pod",
  plural: "pods",
  scope: "Namespaced",
};

/** Reads the log of a container. */
export function logRequest(
  key: ObjectKey,
  options: LogOptions = {},
): ApiRequest {
  checkOptions(options, POD_RULES.logs, "logs");
  const { signal, follow, previous, timestamps, ...query } = options;
  return {
    verb: "get",
    action: `read the log of ${describe(POD, key)}`,
    method: "GET",
    path: withQuery(objectPath(POD, key, "log"), {
      ...query,
      follow: follow || undefined,
      previous: previous || undefined,
      timestamps: timestamps || undefined,
    }),
    headers: { accept: "*/*" },
    signal,
    mayPause: follow === true,
  };
}

/**
 * Runs a command in a container.
 *
 * @throws {TypeError} If there is no command.
 */
export function execRequest(
  key: ObjectKey,
  options: ExecOptions,
): ApiStreamRequest {
  checkOptions(options, POD_RULES.exec, "exec");
  const { command } = options;
  if (command.length === 0) {
    throw new TypeError(
      `Cannot run a command in ${
        describe(POD, key)
      }: "command" must name a program: received []`,
    );
  }
  return streamRequest(key, "exec", {
    action: `run "${command[0]}" in ${describe(POD, key)}`,
    query: { command, ...streamQuery(options) },
    signal: options.signal,
  });
}

/** Connects to the program that a container runs. */
export function attachRequest(
  key: ObjectKey,
  options: AttachOptions = {},
): ApiStreamRequest {
  checkOptions(options, POD_RULES.attach, "attach");
  return streamRequest(key, "attach", {
    action: `attach to ${describe(POD, key)}`,
    query: streamQuery(options),
    signal: options.signal,
  });
}

/** Connects to a port of a pod. */
export function portForwardRequest(
  key: ObjectKey,
  options: PortForwardOptions,
): ApiStreamRequest {
  checkOptions(options, POD_RULES.portForward, "portForward");
  const { port, signal } = options;
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new RangeError(
      `Cannot connect to ${
        describe(POD, key)
      }: "port" must be from 1 to 65535: received ${port}`,
    );
  }
  return {
    // This protocol has no way to close one direction, so v5 is not for it.
    ...streamRequest(key, "portforward", {
      action: `connect to port ${port} of ${describe(POD, key)}`,
      query: { ports: port },
      signal,
    }),
    protocols: [CHANNEL_V4],
  };
}

interface StreamParts {
  readonly action: string;
  readonly query: Parameters<typeof withQuery>[1];
  readonly signal: AbortSignal | undefined;
}

function streamRequest(
  key: ObjectKey,
  subresource: string,
  { action, query, signal }: StreamParts,
): ApiStreamRequest {
  return {
    action,
    path: withQuery(objectPath(POD, key, subresource), query),
    headers: {},
    protocols: [CHANNEL_V5, CHANNEL_V4],
    signal,
  };
}

function streamQuery(
  options: AttachOptions,
): Record<string, string | boolean | undefined> {
  const { container, stdin = false, stdout = true, tty = false } = options;
  return {
    container,
    stdin,
    stdout,
    stderr: options.stderr ?? !tty,
    tty,
  };
}

/** Options of reading a container's log. */
export interface LogOptions extends RequestOptions {
  /**
   * Which container.
   *
   * @default {the pod's only one}
   */
  readonly container?: string | undefined;
  /**
   * Whether to go on with what the container writes from now on, until it ends.
   *
   * @default {false}
   */
  readonly follow?: boolean | undefined;
  /**
   * Whether to read the log of the container's last run instead.
   *
   * @default {false}
   */
  readonly previous?: boolean | undefined;
  /**
   * Only lines of the last so many seconds.
   *
   * @default {all}
   */
  readonly sinceSeconds?: number | undefined;
  /**
   * Only lines since this time (RFC 3339).
   *
   * @default {all}
   */
  readonly sinceTime?: string | undefined;
  /**
   * Only the last so many lines.
   *
   * @default {all}
   */
  readonly tailLines?: number | undefined;
  /**
   * No more than so many bytes.
   *
   * @default {no limit}
   */
  readonly limitBytes?: number | undefined;
  /**
   * Whether each line begins with its time.
   *
   * @default {false}
   */
  readonly timestamps?: boolean | undefined;
}

/** Options of attaching to a container. */
export interface AttachOptions extends RequestOptions {
  /**
   * Which container.
   *
   * @default {the pod's first one, or the one an annotation names}
   */
  readonly container?: string | undefined;
  /**
   * Whether there is input.
   *
   * @default {false}
   */
  readonly stdin?: boolean | undefined;
  /**
   * Whether the output is wanted.
   *
   * @default {true}
   */
  readonly stdout?: boolean | undefined;
  /**
   * Whether the error output is wanted; with a terminal it is part of the
   * output.
   *
   * @default {true without a terminal}
   */
  readonly stderr?: boolean | undefined;
  /**
   * Whether the program gets a terminal.
   *
   * @default {false}
   */
  readonly tty?: boolean | undefined;
}

/** Options of running a command in a container. */
export interface ExecOptions extends AttachOptions {
  /** The program and its arguments; there is no shell between. */
  readonly command: readonly string[];
}

/** Options of a connection to a port of a pod. */
export interface PortForwardOptions extends RequestOptions {
  /** The port in the pod. */
  readonly port: number;
}

const ATTACH: OptionRules<AttachOptions> = {
  signal: "signal?",
  container: "string?",
  stdin: "boolean?",
  stdout: "boolean?",
  stderr: "boolean?",
  tty: "boolean?",
};

/** What the options of each request on a pod must be. */
export const POD_RULES: {
  readonly logs: OptionRules<LogOptions>;
  readonly attach: OptionRules<AttachOptions>;
  readonly exec: OptionRules<ExecOptions>;
  readonly portForward: OptionRules<PortForwardOptions>;
} = {
  logs: {
    signal: "signal?",
    container: "string?",
    follow: "boolean?",
    previous: "boolean?",
    sinceSeconds: "count?",
    sinceTime: "string?",
    tailLines: "size?",
    limitBytes: "count?",
    timestamps: "boolean?",
  },
  attach: ATTACH,
  exec: { ...ATTACH, command: "strings" },
  portForward: { signal: "signal?", port: "port" },
};

/** A longer line is given in pieces. */
const LONGEST_LINE = 1 << 20;

/**
 * Cuts a log into its lines, empty ones too. A line longer than a mebibyte comes
 * in pieces, since logs may hold anything.
 */
export async function* logLines(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
    if (rest.length < LONGEST_LINE) continue;
    yield rest;
    rest = "";
  }
  rest += decoder.decode();
  if (rest !== "") yield rest;
}
