/**
 * Admission: the checks and changes between decoding and storage, in the order of
 * kube-apiserver. A plug-in is a synchronous step of the write; one that must wait
 * (a webhook) uses `answerOf` of `settle.ts`, which repeats the write with the
 * answer. Plug-ins see other objects through the `HookContext` and must not write.
 *
 * @module
 */
import type { UntypedObject } from "@coracle/operator/client";
import type { HookContext, ResourceDefinition } from "../registry.ts";
import type { DeleteOptions, WriteOptions } from "../request/query_options.ts";
import {
  hookContext,
  type ResourceRequest,
} from "../request/resource_request.ts";
import { settle } from "../settle.ts";
import { forbidden, type StatusError } from "../status.ts";

/** Admission operation, named as in AdmissionReview. */
export type Operation = "CREATE" | "UPDATE" | "DELETE" | "CONNECT";

/** Admission request: one attempt of a write. */
export interface Attributes {
  /** Resource, version, subresource, user and warnings. */
  readonly request: ResourceRequest;
  readonly operation: Operation;
  /** Object name; empty for a create with `generateName`, before validation. */
  readonly name: string;
  /** Namespace; empty for cluster-scoped objects, but not for a Namespace. */
  readonly namespace: string;
  /**
   * Object in the version of the request, which mutating plug-ins change or
   * replace; undefined for a deletion.
   */
  object: UntypedObject | undefined;
  /** Stored object in the version of the request; undefined for a create. */
  readonly oldObject: UntypedObject | undefined;
  readonly options: WriteOptions | DeleteOptions;
  readonly dryRun: boolean;
  /** Time, other stored objects and warnings. */
  readonly hooks: HookContext;
  /** Adds an audit annotation to the request. */
  annotate(key: string, value: string): void;
}

/** Phase of admission: all plug-ins mutate before the first validates. */
export type Phase = "mutate" | "validate";

/** Admission plug-in, with its name in kube-apiserver. */
export interface AdmissionPlugin {
  readonly name: string;
  /** Operations that the plug-in handles; by default creates and updates. */
  readonly operations?: readonly Operation[] | undefined;
  /**
   * Resources that the plug-in handles, such as `pods`, `pods/status` or
   * `ingresses.networking.k8s.io`; by default all with their subresources.
   */
  readonly resources?: readonly string[] | undefined;
  /**
   * Changes an object before it is stored.
   *
   * @throws {StatusError} If the plug-in rejects the request.
   */
  mutate?(attributes: Attributes): void;
  /**
   * Checks an object as it will be stored.
   *
   * @throws {StatusError} If the plug-in rejects the request.
   */
  validate?(attributes: Attributes): void;
}

const WRITES: readonly Operation[] = ["CREATE", "UPDATE"];

/** Ordered admission plug-ins of a server. */
export class AdmissionChain {
  readonly #plugins: readonly AdmissionPlugin[];
  readonly #handlers: Map<string, readonly AdmissionPlugin[]> = new Map();

  constructor(plugins: readonly AdmissionPlugin[]) {
    this.#plugins = plugins;
  }

  /**
   * Runs one phase of admission.
   *
   * @throws {StatusError} If a plug-in rejects the request.
   */
  run(phase: Phase, attributes: Attributes): void {
    const { request, operation } = attributes;
    const resource = resourceName(
      request.definition,
      request.subresource?.name,
    );
    const key = `${phase} ${operation} ${resource}`;
    let handlers = this.#handlers.get(key);
    if (handlers === undefined) {
      handlers = this.#plugins.filter((plugin) =>
        plugin[phase] !== undefined &&
        (plugin.operations ?? WRITES).includes(operation) &&
        (plugin.resources?.includes(resource) ?? true)
      );
      this.#handlers.set(key, handlers);
    }
    for (const plugin of handlers) plugin[phase]?.(attributes);
  }
}

function resourceName(
  { group, plural }: ResourceDefinition,
  subresource: string | undefined,
): string {
  const name = group === "" ? plural : `${plural}.${group}`;
  return subresource === undefined ? name : `${name}/${subresource}`;
}

/** Admission attributes of a write. */
export function attributesOf(
  request: ResourceRequest,
  write: {
    readonly operation: Operation;
    readonly object?: UntypedObject | undefined;
    readonly oldObject?: UntypedObject | undefined;
    readonly options: WriteOptions | DeleteOptions;
    readonly hooks?: HookContext | undefined;
  },
): Attributes {
  const { operation, object, oldObject, options } = write;
  const { dryRun } = options;
  const name = request.name ?? object?.metadata?.name ?? "";
  return {
    request,
    operation,
    name,
    namespace: request.namespace ??
      (isNamespace(request.definition) ? name : ""),
    object,
    oldObject,
    options,
    dryRun,
    hooks: write.hooks ?? hookContext(request, { dryRun, apply: false }),
    annotate: (key, value) => {
      request.annotations[key] = value;
    },
  };
}

function isNamespace({ group, plural }: ResourceDefinition): boolean {
  return group === "" && plural === "namespaces";
}

/**
 * Admits a request whose object is not stored: a deletion, a connection, or the
 * object of a subresource or a review. Runs both phases.
 *
 * @throws {StatusError} If a plug-in rejects the request.
 */
export function admit(
  request: ResourceRequest,
  write: Parameters<typeof attributesOf>[1],
): Attributes {
  const { admission } = request.context;
  const attributes = attributesOf(request, write);
  admission.run("mutate", attributes);
  admission.run("validate", attributes);
  return attributes;
}

/**
 * Admits an object that is not stored, such as an Eviction or a review.
 *
 * @returns The object as plug-ins have changed it.
 * @throws {StatusError} If a plug-in rejects the request.
 */
export async function admitPosted(
  request: ResourceRequest,
  object: UntypedObject,
  options: WriteOptions,
  operation: Operation = "CREATE",
): Promise<UntypedObject> {
  const admitted = await settle(
    () =>
      admit(request, { operation, object: structuredClone(object), options }),
    request.warnings,
  );
  return admitted.object as UntypedObject;
}

/** Error 403 of a plug-in that refuses a request. */
export function refusal(attributes: Attributes, why: string): StatusError {
  const { request, name, object } = attributes;
  const { group, plural } = request.definition;
  const { metadata } = object ?? {};
  return forbidden({
    group,
    kind: plural,
    name: name || metadata?.name || metadata?.generateName || "Unknown!",
  }, why);
}
