/**
 * Requests about a single pod: log, exec, attach and port forwarding, with
 * their options. The functions refuse invalid arguments.
 *
 * @module
 */
import { builtIn, objectPath } from "../../api/kind.ts";
import type { ObjectKey } from "../../api/object_key.ts";
import { checkOptions, type OptionRules } from "../../api/options.ts";
import type { ApiStreamRequest } from "../authenticate.ts";
import { type ApiRequest, describe, withQuery } from "../request.ts";
import type { RequestOptions } from "../request_options.ts";
import { CHANNEL_V4, CHANNEL_V5 } from "./channel_stream.ts";

const POD = builtIn("Pod", "Namespaced");

/** Builds the request that reads the log of a container. */
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
    mustBeWhole: true,
  };
}

/**
 * Builds the request that runs a command in a container.
 *
 * @throws {TypeError} If the command is empty.
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

/** Builds the request that attaches to the main process of a container. */
export function attachRequest(
  key: ObjectKey,
  options: Omit<ExecOptions, "command"> = {},
): ApiStreamRequest {
  checkOptions(options, POD_RULES.attach, "attach");
  return streamRequest(key, "attach", {
    action: `attach to ${describe(POD, key)}`,
    query: streamQuery(options),
    signal: options.signal,
  });
}

/** Builds the request that connects to a port of a pod. */
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
    // Port forwarding cannot close one direction, so that v5 is not supported.
    ...streamRequest(key, "portforward", {
      action: `connect to port ${port} of ${describe(POD, key)}`,
      query: { ports: port },
      signal,
    }),
    protocols: [CHANNEL_V4],
  };
}

function streamRequest(
  key: ObjectKey,
  subresource: string,
  { action, query, signal }: {
    readonly action: string;
    readonly query: Parameters<typeof withQuery>[1];
    readonly signal: AbortSignal | undefined;
  },
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
  return { container, stdin, stdout, stderr: options.stderr ?? !tty, tty };
}

/** Options of `client.logs`. */
export interface LogOptions extends RequestOptions {
  /**
   * Name of the container; required if the pod has several.
   */
  readonly container?: string | undefined;
  /**
   * Whether to continue with new lines until the container ends.
   *
   * @default {false}
   */
  readonly follow?: boolean | undefined;
  /**
   * Whether to read the log of the previous instance of the container.
   *
   * @default {false}
   */
  readonly previous?: boolean | undefined;
  /**
   * Maximum age of lines, in seconds.
   */
  readonly sinceSeconds?: number | undefined;
  /**
   * Time of the oldest line to read (RFC 3339).
   */
  readonly sinceTime?: string | undefined;
  /**
   * Number of lines to read from the end of the log.
   */
  readonly tailLines?: number | undefined;
  /**
   * Maximum size of the log, in bytes; the rest is cut off.
   */
  readonly limitBytes?: number | undefined;
  /**
   * Whether each line begins with its timestamp.
   *
   * @default {false}
   */
  readonly timestamps?: boolean | undefined;
}

/** Options of `client.exec`; those of `client.attach` have no command. */
export interface ExecOptions extends RequestOptions {
  /** Program and arguments; they are not interpreted by a shell. */
  readonly command: readonly string[];
  /**
   * Name of the container; required if the pod has several.
   */
  readonly container?: string | undefined;
  /**
   * Whether to open standard input.
   *
   * @default {false}
   */
  readonly stdin?: boolean | undefined;
  /**
   * Whether to read standard output.
   *
   * @default {true}
   */
  readonly stdout?: boolean | undefined;
  /**
   * Whether to read standard error; with a terminal it is part of standard
   * output. Defaults to `true` without a terminal.
   */
  readonly stderr?: boolean | undefined;
  /**
   * Whether to allocate a terminal.
   *
   * @default {false}
   */
  readonly tty?: boolean | undefined;
}

type AttachOptions = Omit<ExecOptions, "command">;

/** Options of `client.portForward`. */
export interface PortForwardOptions extends RequestOptions {
  /** Port of the pod, from 1 to 65535. */
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

/** Types of the options of each pod request. */
const POD_RULES: {
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

/** Maximum length of a line, in characters. */
const MAX_LINE_LENGTH = 1 << 20;

/**
 * Splits a log into lines, including empty ones. A line longer than 2^20
 * characters is yielded in parts, which limits the memory.
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
    if (rest.length < MAX_LINE_LENGTH) continue;
    yield rest;
    rest = "";
  }
  rest += decoder.decode();
  if (rest !== "") yield rest;
}
