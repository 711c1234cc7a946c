import { admitPosted } from "../admission/admission.ts";
import { timestamp, type UntypedObject } from "@coracle/operator/client";
import { isJsonObject, type JsonObject } from "@coracle/operator/internal";
import type { ServerResponse } from "../http/exchange.ts";
import { representationOf, respondCreated } from "../read/respond.ts";
import { findStored } from "../read/get.ts";
import type { GroupResource } from "../registry.ts";
import { asObject } from "../request/body.ts";
import { checkType, readTree } from "../request/object_body.ts";
import { readWriteOptions } from "../request/query_options.ts";
import {
  type ResourceRequest,
  subjectOf,
} from "../request/resource_request.ts";
import { badRequest, conflict, noSuchPath, serverError } from "../status.ts";
import { checkPath, checkStored } from "./update.ts";

/**
 * Whether a resource is `bindings`, whose objects are executed and not stored.
 */
export function isBinding({ group, plural }: GroupResource): boolean {
  return group === "" && plural === "bindings";
}

/**
 * Binds a pod to a node, as a scheduler does: by the `binding` subresource of
 * the pod, or by a Binding in its namespace.
 */
export async function bindPod(
  request: ResourceRequest,
): Promise<ServerResponse> {
  const { context } = request;
  const options = readWriteOptions(request, "CreateOptions");
  representationOf(request, { tables: false });
  const { value } = await readTree(request, "Binding");
  const definition = context.resources.find("", "bindings");
  if (definition) checkType({ ...request, definition }, value);
  const binding = await admitPosted(request, asObject(value), options);
  const pods = context.resources.find("", "pods");
  if (pods === undefined) throw noSuchPath();
  const named: ResourceRequest = {
    ...request,
    definition: pods,
    name: request.name ?? binding.metadata.name,
  };
  if (!named.name) throw badRequest("Name parameter required.");
  checkPath(named, binding.metadata);
  const node = nodeOf(binding);
  const stored = findStored(named);
  checkStored(named, binding.metadata, stored);
  const pod = stored.parse();
  assign(named, pod, { node, ...binding.metadata });
  if (!options.dryRun) context.store.put(pods, pod);
  return await respondCreated(request);
}

function nodeOf({ target }: UntypedObject): string {
  const { kind = "", name } = isJsonObject(target) ? target : {};
  // kube-apiserver answers without a reason, and with code 500.
  if (kind !== "" && kind !== "Node") {
    throw serverError(
      `target.kind: Unsupported value: ${
        JSON.stringify(kind)
      }: supported values: "Node", "<empty>"`,
    );
  }
  if (typeof name === "string" && name !== "") return name;
  throw serverError("target.name: Required value");
}

/**
 * Assigns a pod to a node, in place.
 *
 * @param binding Node, and metadata that is copied to the pod.
 * @throws {StatusError} 409 if it has a node, is being deleted, or waits for
 * gates.
 */
export function assign(
  request: ResourceRequest,
  pod: UntypedObject,
  { node, annotations, labels }: {
    readonly node: string;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
    readonly labels?: Readonly<Record<string, string>> | undefined;
  },
): void {
  const refuse = (why: string) =>
    conflict({ ...subjectOf(request), kind: "pods/binding" }, why);
  const spec = (pod.spec ??= {}) as JsonObject;
  if (pod.metadata.deletionTimestamp !== undefined) {
    throw refuse(
      `pod ${request.name} is being deleted, cannot be assigned to a host`,
    );
  }
  if (spec.nodeName) {
    throw refuse(
      `pod ${request.name} is already assigned to node ${
        JSON.stringify(spec.nodeName)
      }`,
    );
  }
  if (Array.isArray(spec.schedulingGates) && spec.schedulingGates.length > 0) {
    throw refuse(`pod ${request.name} has non-empty .spec.schedulingGates`);
  }
  spec.nodeName = node;
  if (labels) pod.metadata.labels = { ...pod.metadata.labels, ...labels };
  if (annotations) {
    pod.metadata.annotations = { ...pod.metadata.annotations, ...annotations };
  }
  const status = (pod.status ??= {}) as JsonObject;
  const conditions = Array.isArray(status.conditions) ? status.conditions : [];
  const others = conditions.filter((condition) =>
    !isJsonObject(condition) || condition.type !== "PodScheduled"
  );
  const lastTransitionTime = timestamp(request.context.clock.wallTime());
  status.conditions = [...others, {
    type: "PodScheduled",
    status: "True",
    lastProbeTime: null,
    lastTransitionTime,
  }];
}
