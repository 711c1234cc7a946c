import type { Kind, ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type { ApiRequest } from "../client/request.ts";
import type { HttpResponse } from "../client/transport.ts";
import type { CacheEvent, InformerHandler } from "./cache_event.ts";
import type { InformerHealth, InformerOptions } from "./informer_options.ts";
import type { IndexDefinition } from "./object_store.ts";
import type {
  AddHandlerOptions,
  HandlerRegistration,
  SharedInformer,
} from "./shared_informer.ts";

/** What an informer needs of a client; every `Client` has it. */
export interface InformerClient {
  /** Sends a request; rejects with an `ApiError` when the server says no. */
  request(request: ApiRequest): Promise<HttpResponse>;
  /** Gives a kind with its path. */
  resolve<T extends KubernetesObject>(kind: Kind<T>): Promise<ResolvedKind<T>>;
}

/**
 * Keeps a copy of the objects of one kind in step with the server and tells
 * every change.
 *
 * It lists, watches, resumes and lists again by itself, whatever happens to the
 * connection; {@linkcode Informer.health} tells how it fares.
 *
 * @typeParam T The type of the objects.
 */
export declare class Informer<T extends KubernetesObject>
  implements SharedInformer<T> {
  constructor(client: InformerClient, kind: Kind<T>, options?: InformerOptions);

  readonly kind: Kind<T>;
  get size(): number;
  get hasSynced(): boolean;
  get synced(): Promise<void>;

  /**
   * Begins to list and watch. Returns at once; await `synced`. Safe to call
   * twice; after {@linkcode Informer.stop} it cannot start again.
   */
  start(): this;
  /**
   * Ends everything: no event, no request, no timer and no socket is left when
   * the promise resolves. Reads go on to give the last state. Safe to call
   * twice, and in any state.
   */
  stop(): Promise<void>;
  /**
   * Watches other namespaces. Objects of those left behind leave the cache
   * without events; those of new ones come as `initial`. Resolves when the new
   * ones have synced.
   *
   * @param namespaces All namespaces when undefined.
   */
  changeNamespaces(namespaces: readonly string[] | undefined): Promise<void>;

  get(key: ObjectKey | string): T | undefined;
  has(key: ObjectKey | string): boolean;
  keys(): Iterable<string>;
  list(namespace?: string): readonly T[];
  byIndex(index: string, value: string): readonly T[];
  addHandler(
    handler: InformerHandler<T>,
    options?: AddHandlerOptions,
  ): HandlerRegistration<T>;
  addIndex(name: string, definition: IndexDefinition<T>): void;
  events(
    options?: { readonly signal?: AbortSignal | undefined },
  ): AsyncIterableIterator<CacheEvent<T>>;
  [Symbol.asyncIterator](): AsyncIterableIterator<CacheEvent<T>>;
  health(): InformerHealth;
}
