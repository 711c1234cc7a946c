import {
  checkKind,
  isResolved,
  type Kind,
  type ResolvedKind,
} from "../../core/api/kind.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import type { InformerLease } from "../../core/cache/informer/informer_pool.ts";
import type {
  EventSource,
  SourceContext,
  SourceHealth,
} from "../../core/controller/event_source.ts";
import { CustomResourceDefinition } from "../../core/kinds/apiextensions_v1.ts";

/**
 * Creates the `activeWhen` of a node that is active while the
 * CustomResourceDefinition of a kind is installed and serves its version. The
 * definition is watched: when it appears, the event sources of the node start
 * and every primary runs; when it is removed, the sources stop and every
 * primary runs.
 *
 * @param kind A kind that the cluster may not serve.
 * @throws {TypeError} If its plural or scope is unknown: they cannot be
 * discovered while the kind is missing.
 *
 * @example A node for clusters that have Routes
 * ```ts
 * import { untyped } from "@coracle/operator/core";
 * import { crdPresent, readOnlyDependent, Workflow } from "@coracle/operator/workflows";
 *
 * const Route = untyped({
 *   group: "route.example.com",
 *   version: "v1",
 *   kind: "Route",
 *   plural: "routes",
 *   scope: "Namespaced",
 * });
 * const flow = new Workflow().add("route", readOnlyDependent(Route), {
 *   activeWhen: crdPresent(Route),
 * });
 * ```
 */
export function crdPresent(kind: Kind): { readonly crdOf: ResolvedKind } {
  checkKind(kind, "crdPresent()");
  if (!isResolved(kind)) {
    throw new TypeError(
      `Cannot watch the definition of ${kind.kind}: its plural and scope must be given: received plural ${
        JSON.stringify(kind.plural)
      } and scope ${JSON.stringify(kind.scope)}`,
    );
  }
  return Object.freeze({ crdOf: kind });
}

export function crdName({ plural, group }: ResolvedKind): string {
  return `${plural}.${group}`;
}

/** Listener for the presence of a kind; resolves when it has reacted. */
type PresenceListener = (present: boolean) => Promise<void>;

interface Watching<P extends KubernetesObject> {
  readonly context: SourceContext<P>;
  readonly lease: InformerLease<CustomResourceDefinition>;
}

/**
 * Event source that watches one CustomResourceDefinition. When it is installed
 * or removed, the listeners react first; then `present` changes, and all
 * primaries run.
 */
export class CrdPresence<P extends KubernetesObject>
  implements EventSource<P, never> {
  readonly name: string;
  readonly kind: Kind = CustomResourceDefinition;
  readonly readOnly = true;
  readonly startPriority = "loader";
  readonly #crdOf: ResolvedKind;
  readonly #listeners: Set<PresenceListener> = new Set();
  #watching: Watching<P> | undefined;
  #present = false;
  /** Last change; changes are processed one after the other. */
  #following: Promise<void> = Promise.resolve();

  constructor(crdOf: ResolvedKind) {
    this.#crdOf = crdOf;
    this.name = `definition of ${crdName(crdOf)}`;
  }

  /** Whether the kind is served, and every listener has reacted. */
  get present(): boolean {
    return this.#present;
  }

  /**
   * Adds a listener until the source stops, and calls it with the current
   * state.
   */
  follow(listener: PresenceListener): Promise<void> {
    this.#listeners.add(listener);
    return this.#inTurn(() => listener(this.#present));
  }

  async start(context: SourceContext<P>): Promise<void> {
    const lease = context.informers.acquire(CustomResourceDefinition, {
      fieldSelector: `metadata.name=${crdName(this.#crdOf)}`,
    });
    this.#watching = { context, lease };
    const { synced } = lease.informer.addHandler((event) => {
      if (!event.initial) void this.#inTurn(() => this.#change());
    }, { name: `${context.controller}/${this.name}` });
    await synced;
    await this.#inTurn(() => this.#change());
  }

  async stop(): Promise<void> {
    const watching = this.#watching;
    this.#watching = undefined;
    this.#present = false;
    this.#listeners.clear();
    await watching?.lease.release();
    await this.#following;
  }

  health(): SourceHealth {
    const health = this.#watching?.lease.informer.health();
    if (health === undefined) return { status: "unknown" };
    return health.healthy
      ? { status: "healthy" }
      : { status: "unhealthy", message: `${this.name} cannot be watched` };
  }

  #inTurn(task: () => Promise<void>): Promise<void> {
    const done = this.#following.then(task);
    this.#following = done.catch(() => {});
    return done;
  }

  async #change(): Promise<void> {
    const watching = this.#watching;
    const present = this.#isServed();
    if (watching === undefined || present === this.#present) return;
    const { context } = watching;
    const crd = crdName(this.#crdOf);
    context.log.info(present ? "Kind installed" : "Kind removed", { crd });
    // Nodes become inactive before their sources stop, and active after they
    // start.
    if (!present) this.#present = false;
    const followed = Array.from(
      this.#listeners,
      (listener) =>
        listener(present).catch((error) =>
          context.log.error("Cannot react to a change of a kind", {
            crd,
            error,
          })
        ),
    );
    await Promise.all(followed);
    if (this.#watching !== watching) return;
    this.#present = present;
    for (const key of context.primaries.keys()) context.trigger(key);
  }

  #isServed(): boolean {
    const name = crdName(this.#crdOf);
    const crd = this.#watching?.lease.informer.get({ name });
    if (crd === undefined || crd.metadata.deletionTimestamp) return false;
    const { status, spec } = crd;
    const isEstablished = status?.conditions?.some((condition) =>
      condition.type === "Established" && condition.status === "True"
    );
    const { version } = this.#crdOf;
    const isServed = spec.versions.some(({ name, served }) =>
      name === version && served
    );
    return isServed && isEstablished === true;
  }
}
