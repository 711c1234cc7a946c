import type { UntypedObject } from "@coracle/operator/client";
import { isJsonObject } from "@coracle/operator/internal";
import { checkCreates } from "./access/role_escalation.ts";
import { admitPosted } from "./admission/admission.ts";
import type { ServerResponse } from "./http/exchange.ts";
import { answerCall } from "./pods/answer_call.ts";
import type { PodHooks } from "./pods/pod_hooks.ts";
import { findStored } from "./read/get.ts";
import {
  methodNotAllowed,
  type ResourceRequest,
  subjectOf,
} from "./request/resource_request.ts";
import type { WriteOptions } from "./request/query_options.ts";
import { badRequest, notFound, serverError } from "./status.ts";
import { storageKey } from "./storage/stored_object.ts";

/** Hooks of subresources that are proxied to a node, by the names of those. */
const HOOKS = {
  attach: "attach",
  exec: "exec",
  log: "logs",
  portforward: "portForward",
} as const satisfies Record<string, keyof PodHooks>;

/** Subresources that are proxied to a node or a pod. */
const NODE_SUBRESOURCES = new Set(Object.keys(HOOKS));

/** Subresources whose requests need the right to create them, even by GET. */
const CREATED = new Set(["attach", "exec", "portforward"]);

/** Whether only a node can answer a request. */
export function needsNode(
  { definition, subresource }: ResourceRequest,
): boolean {
  const { name } = subresource ?? {};
  return !definition.custom && name !== undefined &&
    (name === "proxy" || NODE_SUBRESOURCES.has(name));
}

/**
 * Answers a node request by the hook for it. Without one it fails: as kube-apiserver
 * does for a pod without a node or on one that is gone, else with an error that
 * names the hook.
 */
export async function askNode(
  request: ResourceRequest,
): Promise<ServerResponse> {
  const { subresource, query, http } = request;
  const { name = "" } = subresource ?? {};
  if (!allowed(name, http.method)) throw methodNotAllowed(request);
  if (name !== "log") {
    await admitPosted(request, connectOptions(request), NO_OPTIONS, "CONNECT");
  }
  if (CREATED.has(name)) checkCreates(request);
  const object = findStored(request).parse();
  if (name === "proxy") throw badRequest("address not allowed");
  const wanted = query.get("container");
  if (name !== "portforward") checkContainer(object, wanted);
  const answer = answerCall(request.context.pods, {
    http,
    query,
    subresource: name,
    pod: object,
    container: wanted ?? containerNames(object)[0] ?? "",
  });
  if (answer !== undefined) return answer;
  const node = isJsonObject(object.spec) ? object.spec.nodeName : undefined;
  if (typeof node === "string" && node !== "") {
    const found = request.context.store.collection({
      group: "",
      plural: "nodes",
    })
      .get(storageKey({ namespace: "", name: node }));
    if (found === undefined) throw notFound(subjectOf(request, node));
    const hook = HOOKS[name as keyof typeof HOOKS];
    throw serverError(
      `Cannot reach a container on node ${node}: no containers run here, and there is no hook pods.${hook}`,
    );
  }
  if (name === "log") {
    return { status: 204, headers: {}, body: new Uint8Array() };
  }
  throw badRequest(`pod ${request.name} does not have a host assigned`);
}

const NO_OPTIONS: WriteOptions = {
  dryRun: false,
  fieldManager: "",
  fieldValidation: "Ignore",
  force: undefined,
};

/** Options object of a connection, such as PodExecOptions, from the query. */
function connectOptions(
  { subresource, query }: ResourceRequest,
): UntypedObject {
  const options: Record<string, unknown> = {
    kind: subresource?.kind,
    apiVersion: "v1",
  };
  for (const key of ["stdin", "stdout", "stderr", "tty"]) {
    if (query.get(key) === "true" || query.get(key) === "1") {
      options[key] = true;
    }
  }
  for (const key of ["container", "path"]) {
    if (query.get(key)) options[key] = query.get(key);
  }
  const ports = query.getAll("ports").map(Number);
  if (ports.length > 0) options.ports = ports;
  const command = query.getAll("command");
  if (command.length > 0) options.command = command;
  return options as unknown as UntypedObject;
}

function allowed(subresource: string, method: string): boolean {
  if (subresource === "proxy") return true;
  return method === "GET" || (method === "POST" && subresource !== "log");
}

/**
 * Checks the container name, which is required for a pod with several
 * containers.
 */
function checkContainer(pod: UntypedObject, wanted: string | null): void {
  const { name } = pod.metadata;
  const names = containerNames(pod);
  if (wanted) {
    if (names.includes(wanted)) return;
    throw badRequest(`container ${wanted} is not valid for pod ${name}`);
  }
  if (names.length < 2) return;
  throw badRequest(
    `a container name must be specified for pod ${name}, choose one of: [${
      names.join(" ")
    }]`,
  );
}

function containerNames({ spec }: UntypedObject): string[] {
  if (!isJsonObject(spec)) return [];
  const containers = Array.isArray(spec.containers) ? spec.containers : [];
  return containers.flatMap((one) =>
    isJsonObject(one) && typeof one.name === "string" ? [one.name] : []
  );
}
