import type { Kind } from "../core/api/kind.ts";
import type { KubernetesObject } from "../core/api/object.ts";
import type { InformerLease } from "../core/cache/informer/informer_lease.ts";
import type { IndexDefinition } from "../core/cache/store/object_store.ts";
import type {
  NamespaceSet,
  SourceContext,
  SourceHealth,
} from "../core/controller/event_source.ts";
import type { WatchSourceOptions } from "./watch_source_options.ts";

/** For whom {@linkcode acquireInformer} opens an informer. */
export interface InformerWish<
  P extends KubernetesObject,
  S extends KubernetesObject,
> {
  readonly context: SourceContext<P>;
  /** The namespaces of the controller. */
  readonly inherited: NamespaceSet;
  readonly indexes: Readonly<Record<string, IndexDefinition<S>>>;
  /** Whether it is still wanted: the source may be stopped meanwhile. */
  readonly isWanted: () => boolean;
}

/**
 * Opens the informer of the secondary resources of a source.
 *
 * @param kind Which objects.
 * @param options Those of the source.
 * @param wish For whom.
 * @returns Undefined if it was not wanted any more when the server was asked.
 */
export async function acquireInformer<
  P extends KubernetesObject,
  S extends KubernetesObject,
>(
  kind: Kind<S>,
  options: WatchSourceOptions<P, S>,
  { context, inherited, indexes, isWanted }: InformerWish<P, S>,
): Promise<InformerLease<S> | undefined> {
  const {
    namespaces = "inherited",
    labelSelector,
    fieldSelector,
    shardSelector,
    metadataOnly,
    prune = [foreignManagedFields(context)],
    bounded,
    client = context.client,
    shared,
  } = options;
  const set = namespaces === "inherited" ? inherited : namespaces;
  // Objects of a cluster-scoped kind are in none of the namespaces.
  const { scope } = set === "all" || kind.scope !== undefined
    ? kind
    : await client.resolve(kind);
  if (!isWanted()) return undefined;
  const lease = context.informers.acquire(kind, {
    namespaces: set === "all" || scope === "Cluster" ? undefined : set,
    labelSelector,
    fieldSelector,
    shardSelector,
    metadataOnly,
    prune,
    bounded,
    client: options.client,
    shared,
  });
  for (const [name, definition] of Object.entries(indexes)) {
    lease.addIndex(name, definition);
  }
  return lease;
}

/** The health of a source, as its informer tells it. */
export function healthOf(
  lease: Pick<InformerLease, "health"> | undefined,
): SourceHealth {
  if (lease === undefined) return { status: "unknown" };
  const { healthy, watches } = lease.health();
  if (healthy) return { status: "healthy" };
  const error = watches
    .map(({ lastError }) => lastError?.message)
    .find((message) => message !== undefined);
  return { status: "unhealthy", message: error ?? "not synced yet" };
}

/**
 * The path of what other operators and people own. That of a controller which
 * comes later is another one, and so is its informer: nothing of its own is
 * missing there.
 */
function foreignManagedFields({ fieldManagers }: SourceContext): string {
  const own = fieldManagers.map((name) => JSON.stringify(name));
  return `metadata.managedFields[manager!=${own.join()}]`;
}
