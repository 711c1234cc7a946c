import type { Kind, ResolvedKind } from "../api/kind.ts";
import type {
  ApplyObject,
  DeepPartial,
  KubernetesObject,
} from "../api/object.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type { JsonPatchOperation } from "../patch/json_patch.ts";
import {
  type ApiRequest,
  applyRequest,
  getRequest,
  patchRequest,
  replaceRequest,
  withSubresource,
} from "./request.ts";
import type {
  ApplyOptions,
  GetOptions,
  PatchOptions,
  WriteOptions,
} from "./request_options.ts";

/** Writes with options of their own. */
export type WriteAction = "apply" | "create" | "patch" | "replace";

/** Builder of the request of a write, from its key, object or patch. */
export type WriteRequest<O, Parts extends readonly unknown[]> = (
  kind: ResolvedKind,
  ...partsAndOptions: [...Parts, O]
) => ApiRequest;

/** Dependencies of {@linkcode StatusClient} and {@linkcode ScaleClient}. */
export interface SubresourceClientDeps {
  /** Sends a request about a kind and decodes its response. */
  send<T>(
    kind: Kind,
    request: (resolved: ResolvedKind) => ApiRequest,
  ): Promise<T>;
  /** Sends a write with checked options and the client's field manager. */
  write<T, O extends WriteOptions, Parts extends readonly unknown[]>(
    kind: Kind,
    action: WriteAction,
    options: O,
    request: WriteRequest<O, Parts>,
    ...parts: Parts
  ): Promise<T>;
}

/** Client of the `status` subresource; see {@linkcode Client.status}. */
export class StatusClient {
  readonly #deps: SubresourceClientDeps;

  /**
   * Creates the client; use the property of a `Client` instead.
   *
   * @param deps Parts of the `Client`.
   */
  constructor(deps: SubresourceClientDeps) {
    this.#deps = deps;
  }

  /** Reads an object through its status subresource. */
  get<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options: GetOptions = {},
  ): Promise<T> {
    const read = withSubresource(options, "status");
    return this.#deps.send(kind, (resolved) => getRequest(resolved, key, read));
  }

  /** Replaces the status; other changes of the object are ignored. */
  replace<T extends KubernetesObject>(
    kind: Kind<T>,
    object: T,
    options: WriteOptions = {},
  ): Promise<T> {
    const write = withSubresource(options, "status");
    return this.#deps.write(kind, "replace", write, replaceRequest, object);
  }

  /** Patches the status: an object with a `status`, or a list of operations. */
  patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    body: DeepPartial<T> | readonly JsonPatchOperation[],
    options: PatchOptions = {},
  ): Promise<T> {
    const write = withSubresource(options, "status");
    return this.#deps.write(kind, "patch", write, patchRequest, key, body);
  }

  /** Applies fields of the status (server-side apply). */
  apply<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options: ApplyOptions = {},
  ): Promise<T> {
    const write = withSubresource(options, "status");
    return this.#deps.write(kind, "apply", write, applyRequest, object);
  }
}

/** Scale of an object of any kind (`autoscaling/v1`). */
export interface Scale extends KubernetesObject {
  /** Desired state. */
  spec?: {
    /** Desired number of replicas. */
    replicas?: number | undefined;
  } | undefined;
  /** Observed state. */
  status?: {
    /** Observed number of replicas. */
    replicas: number;
    /** Label selector of the pods, as text; absent if the kind has none. */
    selector?: string | undefined;
  } | undefined;
}

/** Client of the `scale` subresource; see {@linkcode Client.scale}. */
export class ScaleClient {
  readonly #deps: SubresourceClientDeps;

  /**
   * Creates the client; use the property of a `Client` instead.
   *
   * @param deps Parts of the `Client`.
   */
  constructor(deps: SubresourceClientDeps) {
    this.#deps = deps;
  }

  /** Reads the scale of an object. */
  get(kind: Kind, key: ObjectKey, options: GetOptions = {}): Promise<Scale> {
    const read = withSubresource(options, "scale");
    return this.#deps.send(kind, (resolved) => getRequest(resolved, key, read));
  }

  /** Patches the scale of an object, such as its desired number of replicas. */
  patch(
    kind: Kind,
    key: ObjectKey,
    body: DeepPartial<Scale> | readonly JsonPatchOperation[],
    options: PatchOptions = {},
  ): Promise<Scale> {
    const write = withSubresource(options, "scale");
    return this.#deps.write(kind, "patch", write, patchRequest, key, body);
  }
}
