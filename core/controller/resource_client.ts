import type { Kind, ResolvedKind } from "../api/kind.ts";
import type {
  ApplyObject,
  DeepPartial,
  KubernetesObject,
  NewObject,
  ObjectList,
} from "../api/object.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type {
  ApplyOptions,
  DeleteOptions,
  GetOptions,
  ListOptions,
  PatchOptions,
  WriteOptions,
} from "../client/request_options.ts";
import type { JsonPatchOperation } from "../patch/json_patch.ts";

/** The body of a patch. */
export type PatchBody<T> = DeepPartial<T> | readonly JsonPatchOperation[];

/** Writes a subresource that has the shape of its object, such as the status. */
export interface SubresourceWriter {
  apply<T extends KubernetesObject>(
    kind: Kind<T>,
    object: ApplyObject<T>,
    options?: ApplyOptions,
  ): Promise<T>;
  patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    body: PatchBody<T>,
    options?: PatchOptions,
  ): Promise<T>;
  replace<T extends KubernetesObject>(
    kind: Kind<T>,
    object: T,
    options?: WriteOptions,
  ): Promise<T>;
}

/** What the controller needs of a client; every `Client` has it. */
export interface ResourceClient extends SubresourceWriter {
  readonly status: SubresourceWriter;
  find<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options?: GetOptions,
  ): Promise<T | undefined>;
  list<T extends KubernetesObject>(
    kind: Kind<T>,
    options?: ListOptions,
  ): Promise<ObjectList<T>>;
  listAll<T extends KubernetesObject>(
    kind: Kind<T>,
    options?: ListOptions,
  ): AsyncIterable<T>;
  create<T extends KubernetesObject>(
    kind: Kind<T>,
    object: NewObject<T>,
    options?: WriteOptions,
  ): Promise<T>;
  delete<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options?: DeleteOptions,
  ): Promise<T | undefined>;
  resolve<T extends KubernetesObject>(kind: Kind<T>): Promise<ResolvedKind<T>>;
}
