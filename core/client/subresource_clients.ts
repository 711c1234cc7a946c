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
  checkedWrite,
  getRequest,
  patchRequest,
  replaceRequest,
  withSubresource,
} from "./request.ts";
import type {
  ApplyOptions,
  GetOptions,
  PatchOptions,
  SubresourceOption,
  WriteOptions,
} from "./request_options.ts";

/** Dependencies of {@linkcode StatusClient} and {@linkcode ScaleClient}. */
export interface SubresourceClientDeps {
  /** Sends a request about a kind and decodes its response. */
  send<T>(
    kind: Kind,
    request: (resolved: ResolvedKind) => ApiRequest,
  ): Promise<T>;
  /** Adds the client's field manager to options without one. */
  withFieldManager<O extends WriteOptions>(options: O): O;
}

/** Client of the `status` subresource; see {@linkcode Client.status}. */
export class StatusClient {
  readonly #deps: SubresourceClientDeps;

  /**
   * Creates the client; use the property of a `Client` instead.
   *
   * @param deps Parts of that client.
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
    return this.#deps.send(
      kind,
      (resolved) =>
        getRequest(resolved, key, withSubresource(options, "status")),
    );
  }

  /** Replaces the status; other changes of the object are ignored. */
  replace<T extends KubernetesObject>(
    kind: Kind<T>,
    object: T,
    options: WriteOptions = {},
  ): Promise<T> {
    return this.#deps.send(
      kind,
      (resolved) =>
        replaceRequest(resolved, object, this.#write(options, "replace")),
    );
  }

  /** Patches the status, by an object with a `status` or a list of operations. */
  patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    body: DeepPartial<T> | readonly JsonPatchOperation[],
    options: PatchOptions = {},
  ): Promise<T> {
    return this.#deps.send(
      kind,
      (resolved) =>
        patchRequest(resolved, key, body, this.#write(options, "patch")),
    );
  }

  /** Applies fields of the status (server-side apply). */
  apply<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options: ApplyOptions = {},
  ): Promise<T> {
    return this.#deps.send(
      kind,
      (resolved) =>
        applyRequest(resolved, object, this.#write(options, "apply")),
    );
  }

  #write<O extends WriteOptions>(
    options: O,
    subject: "apply" | "patch" | "replace",
  ): O & SubresourceOption {
    const write = this.#deps.withFieldManager(options);
    return checkedWrite(withSubresource(write, "status"), subject);
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
    /** Label selector of the pods. */
    selector?: string | undefined;
  } | undefined;
}

/** Client of the `scale` subresource; see {@linkcode Client.scale}. */
export class ScaleClient {
  readonly #deps: SubresourceClientDeps;

  /**
   * Creates the client; use the property of a `Client` instead.
   *
   * @param deps Parts of that client.
   */
  constructor(deps: SubresourceClientDeps) {
    this.#deps = deps;
  }

  /** Reads the scale of an object. */
  get(kind: Kind, key: ObjectKey, options: GetOptions = {}): Promise<Scale> {
    return this.#deps.send(
      kind,
      (resolved) =>
        getRequest(resolved, key, withSubresource(options, "scale")),
    );
  }

  /** Patches the scale of an object, such as its desired number of replicas. */
  patch(
    kind: Kind,
    key: ObjectKey,
    body: DeepPartial<Scale> | readonly JsonPatchOperation[],
    options: PatchOptions = {},
  ): Promise<Scale> {
    const write = this.#deps.withFieldManager(options);
    return this.#deps.send(
      kind,
      (resolved) =>
        patchRequest(
          resolved,
          key,
          body,
          checkedWrite(withSubresource(write, "scale"), "patch"),
        ),
    );
  }
}
