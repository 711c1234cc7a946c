/**
 * What is asked of a single pod beside its object, as plain values.
 *
 * @module
 */
import { objectPath, type ResolvedKind } from "../api/kind.ts";
import type { ObjectKey } from "../api/object_key.ts";
import { checkOptions } from "../api/option_rules.ts";
import type { NamedStreamRequest } from "./authenticate.ts";
import { CHANNEL_V4, CHANNEL_V5 } from "./channel_stream.ts";
import {
  type AttachOptions,
  type ExecOptions,
  type LogOptions,
  POD_RULES,
  type PortForwardOptions,
} from "./pod_options.ts";
import { withQuery } from "./query.ts";
import type { ApiRequest } from "./request.ts";
import { describe } from "./request_subject.ts";

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
): NamedStreamRequest {
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
): NamedStreamRequest {
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
): NamedStreamRequest {
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
): NamedStreamRequest {
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
