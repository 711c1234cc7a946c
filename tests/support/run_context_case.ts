import type { ObjectKey, OwnWrite } from "@coracle/operator/client";
import type {
  ConfigMap,
  KubernetesObject,
  ResolvedKind,
} from "@coracle/operator/kinds";
import { keyText } from "../../core/api/object_key.ts";
import { Client } from "../../core/client/client.ts";
import { Ownership } from "../../core/controller/run/owner.ts";
import { Run } from "../../core/controller/run/run.ts";
import { RunContext } from "../../core/controller/run/run_context.ts";
import type { RunDeps } from "../../core/controller/run/run_deps.ts";
import { lazyApplyMemory } from "../../core/controller/run/run_writes.ts";
import { silentLogger } from "../../core/logger.ts";
import {
  type ScriptedAnswer,
  ScriptedTransport,
} from "./scripted_transport.ts";

/** Kind of the primary. */
export const GADGET = {
  group: "example.com",
  version: "v1",
  kind: "Gadget",
  plural: "gadgets",
  scope: "Namespaced",
} as const;
/** Key of the primary. */
export const KEY = { namespace: "default", name: "a" };
/** Finalizer of the controller. */
export const FINALIZER = "example.com/ours";
/** Answer with the object of the request. */
export const OK: ScriptedAnswer = {};

/** State of the primary. */
export function gadget(
  metadata: object = {},
): KubernetesObject & { spec: object } {
  const { apiVersion, kind } = { apiVersion: "example.com/v1", kind: "Gadget" };
  return {
    apiVersion,
    kind,
    metadata: { ...KEY, uid: "uid-a", resourceVersion: "1", ...metadata },
    spec: {},
  };
}

/** State of another object. */
export function configMap(metadata: object = {}): ConfigMap {
  const { apiVersion, kind } = { apiVersion: "v1", kind: "ConfigMap" };
  return {
    apiVersion,
    kind,
    metadata: { ...KEY, uid: "uid-m", resourceVersion: "5", ...metadata },
  };
}

/** Error response of a server. */
export function refused(status: number, reason: string): ScriptedAnswer {
  const code = status;
  return { status, body: { kind: "Status", code, reason, message: "No" } };
}

/** Context of a run, and what it does. */
export interface ContextCase {
  readonly ctx: RunContext<KubernetesObject>;
  readonly deps: RunDeps<KubernetesObject>;
  readonly run: Run<KubernetesObject>;
  /** Requests, as method and path. */
  readonly sent: string[];
  /** Bodies of the requests. */
  readonly bodies: Record<string, unknown>[];
  /** What the caches were given of own writes. */
  readonly written: unknown[];
  /** Arguments of the reads. */
  readonly read: unknown[];
  /** Number of runs that were requested. */
  requests(): number;
}

/** Context of a run with a server and caches that the test plays. */
export function contextOf(
  {
    answers = [],
    primary = gadget(),
    cached = {},
    keptFinalizer,
    needsLive = false,
    cacheIsPartial = false,
    kind = GADGET,
    isDirty = false,
  }: {
    /** Responses in order; without more, the body of a request comes back. */
    answers?: ScriptedAnswer[];
    primary?: KubernetesObject;
    /** Cached objects by kind and key. */
    cached?: Readonly<Record<string, KubernetesObject>>;
    keptFinalizer?: string;
    /** Whether the status has been written often, so that others may write it. */
    needsLive?: boolean;
    cacheIsPartial?: boolean;
    kind?: ResolvedKind;
    /** Whether an event has arrived since the run began. */
    isDirty?: boolean;
  } = {},
): ContextCase {
  const sent: string[] = [];
  const bodies: Record<string, unknown>[] = [];
  const transport = new ScriptedTransport(({ method, path, body }) => {
    sent.push(`${method} ${path}`);
    const parsed = body === undefined ? {} : JSON.parse(String(body));
    bodies.push(parsed);
    const answer = answers.shift() ?? OK;
    const kind = path.includes("configmaps") ? configMap() : gadget();
    const { metadata } = parsed as Partial<KubernetesObject>;
    const own = { ...kind.metadata, ...metadata };
    return answer.body !== undefined || answer.status !== undefined ? answer : {
      body: method === "DELETE" ? {} : { ...kind, ...parsed, metadata: own },
    };
  });
  const client = new Client({ transport, namespace: "default" }, {
    retry: { maxAttempts: 1 },
  });
  const written: unknown[] = [];
  const read: unknown[] = [];
  const begin = (where: string) => (key: ObjectKey | string): OwnWrite => {
    const what = `${where} ${typeof key === "string" ? key : keyText(key)}`;
    written.push(`begin ${what}`);
    return {
      succeed: (_object, options) => written.push([what, options]),
      fail: () => written.push(`fail ${what}`),
    };
  };
  const find = (kind: string, key: ObjectKey | string) =>
    cached[`${kind} ${typeof key === "string" ? key : keyText(key)}`];
  let requested = 0;
  const run = new Run<KubernetesObject>({
    key: "default/a",
    primary,
    place: -1,
    isUnread: false,
    cause: { type: "added" } as never,
    retry: { attempt: 0 } as never,
    deleted: false,
    finalStateUnknown: false,
    startedAt: 0,
    waited: 0,
    item: { added: Number(isDirty) },
    scheduler: { request: () => requested++ },
  });
  const sources = {
    ofKind: () => [],
    get: (kind: { kind: string }, key: ObjectKey) =>
      Promise.resolve(find(kind.kind, key)),
    read: (...parts: unknown[]) => Promise.resolve(void read.push(parts)),
    readList: (...parts: unknown[]) => {
      read.push(parts);
      return Promise.resolve([]);
    },
    beginWrites: (kind: { kind: string }, key: ObjectKey) =>
      kind.kind === "ConfigMap" ? [begin("source")(key)] : [],
  };
  const deps = {
    controller: "gadget",
    kind,
    fieldManager: "gadget",
    finalizer: FINALIZER,
    keptFinalizer,
    takeOver: [],
    cacheIsPartial,
    client,
    clock: client.defaults.clock,
    log: silentLogger,
    primaries: {
      cache: {
        get: (key: string) => find("Gadget", key),
        read: (key: ObjectKey | string) => Promise.resolve(find("Gadget", key)),
      },
      beginWrite: begin("primary"),
    },
    sources,
    recorder: { record() {} },
    applied: lazyApplyMemory(),
    ownership: new Ownership({
      kind,
      sources: sources as never,
      log: silentLogger,
    }),
    writeObserver: { needsLive: () => needsLive, observe: () => undefined },
  } as unknown as RunDeps<KubernetesObject>;
  const ctx = new RunContext(run, deps);
  const requests = () => requested;
  return { ctx, deps, run, sent, bodies, written, read, requests };
}
