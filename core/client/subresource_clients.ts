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
  ofPart,
  patchRequest,
  replaceRequest,
} from "./request.ts";
import type {
  ApplyOptions,
  GetOptions,
  PatchOptions,
  SubresourceOption,
  WriteOptions,
} from "./request_options.ts";

/** What a part of a client needs of the whole. */
export interface ClientCore {
  /** Gives a kind its path. */
  resolve<T extends KubernetesObject>(kind: Kind<T>): Promise<ResolvedKind<T>>;
  /** Sends a request and decodes its answer. */
  json(request: ApiRequest): Promise<unknown>;
  /** Adds the client's field manager where a call names none. */
  managed<O extends WriteOptions>(options: O): O;
}

/** Reads and writes the status of objects, and nothing else of them. */
export class StatusClient {
  readonly #core: ClientCore;

  /**
   * Usually had from a client.
   *
   * @param core What it needs of the whole client.
   */
  constructor(core: ClientCore) {
    this.#core = core;
  }

  /** Reads an object by its status subresource. */
  async get<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options: GetOptions = {},
  ): Promise<T> {
    const resolved = await this.#core.resolve(kind);
    return await this.#core.json(
      getRequest(resolved, key, ofPart(options, "status")),
    ) as T;
  }

  /** Replaces the status; other changes of the object are ignored. */
  async replace<T extends KubernetesObject>(
    kind: Kind<T>,
    object: T,
    options: WriteOptions = {},
  ): Promise<T> {
    const resolved = await this.#core.resolve(kind);
    return await this.#core.json(
      replaceRequest(resolved, object, this.#write(options)),
    ) as T;
  }

  /** Patches the status: the body has a `status`, or is a list of operations. */
  async patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    body: DeepPartial<T> | readonly JsonPatchOperation[],
    options: PatchOptions = {},
  ): Promise<T> {
    const resolved = await this.#core.resolve(kind);
    return await this.#core.json(
      patchRequest(resolved, key, body, this.#write(options)),
    ) as T;
  }

  /** Applies fields of the status (server-side apply). */
  async apply<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options: ApplyOptions = {},
  ): Promise<T> {
    const resolved = await this.#core.resolve(kind);
    return await this.#core.json(
      applyRequest(resolved, object, this.#write(options)),
    ) as T;
  }

  #write<O extends WriteOptions>(options: O): O & SubresourceOption {
    return ofPart(this.#core.managed(options), "status");
  }
}

/** How many replicas an object has, whatever its kind (`autoscaling/v1`). */
export interface Scale extends KubernetesObject {
  /** What is wanted. */
  spec?: {
    /** How many are wanted. */
    replicas?: number | undefined;
  } | undefined;
  /** What there is. */
  status?: {
    /** How many there are. */
    replicas: number;
    /** Which pods they are, as a label selector. */
    selector?: string | undefined;
  } | undefined;
}

/** Reads and writes the number of replicas of objects. */
export class ScaleClient {
  readonly #core: ClientCore;

  /**
   * Usually had from a client.
   *
   * @param core What it needs of the whole client.
   */
  constructor(core: ClientCore) {
    this.#core = core;
  }

  /** Reads how many replicas an object has. */
  async get(
    kind: Kind,
    key: ObjectKey,
    options: GetOptions = {},
  ): Promise<Scale> {
    const resolved = await this.#core.resolve(kind);
    return await this.#core.json(
      getRequest(resolved, key, ofPart(options, "scale")),
    ) as Scale;
  }

  /** Changes how many replicas an object shall have. */
  async patch(
    kind: Kind,
    key: ObjectKey,
    body: DeepPartial<Scale> | readonly JsonPatchOperation[],
    options: PatchOptions = {},
  ): Promise<Scale> {
    const resolved = await this.#core.resolve(kind);
    const write = this.#core.managed(options);
    return await this.#core.json(
      patchRequest(resolved, key, body, ofPart(write, "scale")),
    ) as Scale;
  }
}
