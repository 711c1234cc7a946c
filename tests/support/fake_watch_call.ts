import type { ServerResponse } from "node:http";
import type {
  FieldRequirement,
  KubernetesObject,
  ResolvedKind,
} from "@coracle/operator/client";
import { parseFieldSelector } from "../../core/api/field_selector.ts";
import {
  matchesLabels,
  parseLabelSelector,
} from "../../core/api/label_selector.ts";

/** Kind that a `FakeWatchServer` serves. */
export interface Widget extends KubernetesObject {
  spec: { size: number };
}

export const Widget: ResolvedKind<Widget> = {
  group: "example.dev",
  version: "v1",
  kind: "Widget",
  plural: "widgets",
  scope: "Namespaced",
};

/** Takes the answer to a call: to a socket, or within the process. */
export interface Answer {
  writeHead(code: number, headers?: Record<string, string>): void;
  flushHeaders(): void;
  write(bytes: string | Uint8Array, onWritten?: () => void): void;
  end(body?: string): void;
  /** Breaks the connection. */
  reset(): void;
  /** Calls back when the answer has ended, by either side. */
  onClose(callback: () => void): void;
}

/** Request to the server with the effect of its fault. */
export interface Call {
  readonly verb: "get" | "list" | "watch";
  readonly namespace: string | undefined;
  /** Name of the requested object. */
  readonly name: string | undefined;
  readonly query: URLSearchParams;
  readonly accept: string;
  readonly response: Answer;
  /** Answers as a server in good health. */
  serve(): void;
}

/** Answers a call in some wrong way, or does something first and then serves. */
export type Fault = (call: Call) => void;

/** The version of each object, by key in order. */
export function stateOf(
  objects: Iterable<KubernetesObject>,
): Record<string, string | undefined> {
  const entries = [...objects].map((
    { metadata },
  ): [string, string | undefined] => [
    `${metadata.namespace}/${metadata.name}`,
    metadata.resourceVersion,
  ]);
  return Object.fromEntries(entries.sort(([a], [b]) => a < b ? -1 : 1));
}

/** Whether an object matches the namespace and the selectors of a call. */
export function isSelected(call: Call, object: Widget): boolean {
  const { namespace, labels } = object.metadata;
  const selector = parseLabelSelector(call.query.get("labelSelector") ?? "");
  const fields = parseFieldSelector(call.query.get("fieldSelector") ?? "");
  return fields.every((requirement) => hasField(object, requirement)) &&
    (call.namespace === undefined || call.namespace === namespace) &&
    matchesLabels(selector, labels);
}

/** Whether an object meets a condition on any of its fields. */
function hasField(
  object: unknown,
  { field, operator, value }: FieldRequirement,
): boolean {
  let found = object;
  for (const name of field.split(".")) {
    found = (found as Record<string, unknown> | undefined)?.[name];
  }
  return (String(found ?? "") === value) === (operator === "=");
}

/** Sends an event to the watch of a call. */
export function sendEvent(call: Call, type: string, object: unknown): void {
  const sent = type === "ERROR" ? object : asAsked(object, call.accept);
  call.response.write(`${JSON.stringify({ type, object: sent })}\n`);
}

/** Object of a response, or its metadata where the call accepts only these. */
export function asAsked(object: unknown, accept: string): unknown {
  if (!accept.includes("as=PartialObjectMetadata")) return object;
  const { metadata } = object as KubernetesObject;
  return {
    apiVersion: "meta.k8s.io/v1",
    kind: "PartialObjectMetadata",
    metadata,
  };
}

/** Answers with a Status. */
export function sendStatus(
  response: Answer,
  code: number,
  reason: string,
  headers: Record<string, string> = {},
): void {
  sendJson(response, code, statusBody(code, reason), headers);
}

/** A Status as the body of an answer or as the object of an ERROR event. */
export function statusBody(code: number, reason: string): object {
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: `told to answer ${reason}`,
    reason,
    code,
  };
}

/** Answers that a resource version is too large. */
export function sendTooLarge(response: Answer): void {
  sendJson(response, 504, {
    ...statusBody(504, "Timeout"),
    message: "Too large resource version",
    details: {
      causes: [{
        reason: "ResourceVersionTooLarge",
        message: "Too large resource version",
      }],
    },
  });
}

/** Answers with JSON. */
export function sendJson(
  response: Answer,
  code: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(code, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

/** The answer to a call over a socket. */
export function socketAnswer(response: ServerResponse): Answer {
  return {
    writeHead: (code, headers) => void response.writeHead(code, headers),
    flushHeaders: () => response.flushHeaders(),
    write: (bytes, onWritten) => void response.write(bytes, onWritten),
    end: (body) => void response.end(body),
    reset: () => response.socket?.resetAndDestroy(),
    onClose: (callback) => void response.on("close", callback),
  };
}
