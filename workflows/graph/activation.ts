import type { KubernetesObject } from "../../core/api/object.ts";
import { keyOf, keyText, type ObjectKey } from "../../core/api/object_key.ts";
import { deadline, systemClock } from "../../core/clock.ts";
import type {
  EventSource,
  NamespaceSet,
  PrimaryEvent,
  SourceContext,
  SourceHealth,
} from "../../core/controller/event_source.ts";
import type { Verdict } from "../dependents/dependent.ts";
import { asVerdict, type NodeContext, type WorkflowNode } from "./node.ts";
import {
  checkKind,
  isResolved,
  type Kind,
  type ResolvedKind,
} from "../../core/api/kind.ts";
import type { OwnWrite } from "../../core/cache/informer/shared_informer.ts";
import type { InformerLease } from "../../core/cache/informer/informer_pool.ts";
import { CustomResourceDefinition } from "../../core/kinds/apiextensions_v1.ts";

/**
 * Activation of the nodes of a workflow, and the event sources that start and
 * stop with them.
 *
 * A source starts with the controller if a node without `activeWhen` uses it;
 * otherwise with the first of its nodes that becomes active.
 */
export class Activation<P extends KubernetesObject> {
  /** Event sources that the controller starts. */
  readonly sources: readonly EventSource<P>[];
  readonly #gates: ReadonlyMap<EventSource<P>, GatedSource<P>>;
  /** Presences of kinds, by their name. */
  readonly #presences: ReadonlyMap<string, CrdPresence<P>>;

  constructor(nodes: readonly WorkflowNode<P>[]) {
    const users = new Map<EventSource<P>, WorkflowNode<P>[]>();
    const presences = new Map<string, CrdPresence<P>>();
    for (const node of nodes) {
      for (const source of node.dependent.sources ?? []) {
        users.set(source, [...users.get(source) ?? [], node]);
      }
      const { activeWhen } = node.when;
      if (typeof activeWhen !== "object") continue;
      const presence = new CrdPresence<P>(activeWhen.crdOf);
      presences.set(presence.name, presence);
    }
    this.#presences = presences;
    const gates = new Map<EventSource<P>, GatedSource<P>>();
    for (const [source, ofNodes] of users) {
      if (ofNodes.some(({ when }) => when.activeWhen === undefined)) continue;
      const opening = ofNodes.flatMap((node) => this.#presenceOf(node) ?? []);
      gates.set(source, new GatedSource(source, opening));
    }
    this.#gates = gates;
    this.sources = [
      ...presences.values(),
      ...Array.from(users.keys(), (source) => gates.get(source) ?? source),
    ];
  }

  /**
   * Decides whether a node is active for a primary; if so, its sources have
   * synced.
   *
   * @returns Undefined if the node has no `activeWhen`.
   */
  async verdict(
    node: WorkflowNode<P>,
    { primary, ctx }: Pick<NodeContext<P, unknown>, "primary" | "ctx">,
  ): Promise<Verdict | undefined> {
    const { activeWhen } = node.when;
    if (activeWhen === undefined) return undefined;
    const presence = this.#presenceOf(node);
    if (presence !== undefined) return { met: presence.present };
    if (typeof activeWhen !== "function") return undefined;
    const verdict = asVerdict(await activeWhen({ primary, ctx }), {
      node: node.name,
      condition: "activeWhen",
    });
    const key = keyText(keyOf(primary));
    for (const source of node.dependent.sources ?? []) {
      const gate = this.#gates.get(source);
      if (verdict.met) await gate?.hold(node.name, key);
      else await gate?.release(node.name, key);
    }
    return verdict;
  }

  #presenceOf({ when }: WorkflowNode<P>): CrdPresence<P> | undefined {
    return typeof when.activeWhen === "object"
      ? this.#presences.get(presenceName(when.activeWhen.crdOf))
      : undefined;
  }
}

const SYNC_TIMEOUT_MS = 10_000;

/** Key that stands for all primaries. */
const ALL_PRIMARIES = "*";

/**
 * Event source of nodes with `activeWhen`: it starts when the first of them
 * becomes active for a primary, and stops when the last one becomes inactive.
 *
 * Invariant: primaries without an active node are not triggered.
 */
export class GatedSource<P extends KubernetesObject, S = unknown>
  implements EventSource<P, S> {
  readonly #inner: EventSource<P, S>;
  readonly #presences: ReadonlySet<CrdPresence<P>>;
  /** Active nodes by primary. */
  readonly #holders: Map<string, Set<string>> = new Map();
  #context: SourceContext<P> | undefined;
  #namespaces: NamespaceSet = [];
  /** Start of the inner source; resolves when it has synced. */
  #opening: Promise<void> | undefined;
  /** Identity of the current start of the inner source. */
  #life: symbol | undefined;
  /** Whether the inner source has delivered its initial events. */
  #open = false;
  #closing: Promise<void> = Promise.resolve();

  /** Creates a source; its node is active while the definitions of `presences` exist. */
  constructor(
    inner: EventSource<P, S>,
    presences: Iterable<CrdPresence<P>> = [],
  ) {
    this.#inner = inner;
    this.#presences = new Set(presences);
  }

  get name(): string {
    return this.#inner.name;
  }

  get kind(): Kind | undefined {
    return this.#inner.kind;
  }

  get readOnly(): boolean | undefined {
    return this.#inner.readOnly;
  }

  /**
   * Records that a node is active for a primary.
   *
   * @returns Resolves when the source has synced.
   * @throws {Error} If the source cannot start, does not sync in time, or is
   * not registered with the controller.
   */
  async hold(node: string, primary: string): Promise<void> {
    const nodes = this.#holders.get(primary) ?? new Set();
    this.#holders.set(primary, nodes.add(node));
    if (this.#open) return;
    try {
      await this.#inTime(this.#opening ??= this.#start());
    } catch (error) {
      await this.release(node, primary);
      throw error;
    }
  }

  /** Records that a node is inactive for a primary. */
  async release(node: string, primary: string): Promise<void> {
    const nodes = this.#holders.get(primary);
    nodes?.delete(node);
    if (nodes?.size === 0) this.#holders.delete(primary);
    if (this.#holders.size === 0) await this.#stop();
  }

  async start(context: SourceContext<P>): Promise<void> {
    this.#context = context;
    this.#namespaces = context.namespaces;
    await Promise.all(Array.from(this.#presences, (presence) => {
      const { name } = presence;
      return presence.follow((present) =>
        present
          ? this.hold(name, ALL_PRIMARIES)
          : this.release(name, ALL_PRIMARIES)
      );
    }));
  }

  async stop(): Promise<void> {
    this.#context = undefined;
    this.#holders.clear();
    await this.#stop();
  }

  health(): SourceHealth {
    return this.#opening === undefined
      ? { status: "healthy", message: "not active" }
      : this.#inner.health?.() ?? { status: "unknown" };
  }

  async secondaries(primary: P): Promise<readonly S[]> {
    return this.#open ? await this.#inner.secondaries?.(primary) ?? [] : [];
  }

  async get(key: ObjectKey): Promise<S | undefined> {
    return this.#open ? await this.#inner.get?.(key) : undefined;
  }

  async list(namespace?: string): Promise<readonly S[]> {
    return this.#open ? await this.#inner.list?.(namespace) ?? [] : [];
  }

  beginWrite(key: ObjectKey): OwnWrite {
    const write = this.#opening && this.#inner.beginWrite?.(key);
    return write ?? { succeed() {}, fail() {} };
  }

  onPrimary(event: PrimaryEvent<P>): void {
    if (this.#opening !== undefined) this.#inner.onPrimary?.(event);
    if (event.type !== "deleted") return;
    this.#holders.delete(keyText(event.key));
    if (this.#holders.size > 0) return;
    const log = this.#context?.log;
    this.#stop().catch((error) =>
      log?.error("Cannot stop a source", { source: this.name, error })
    );
  }

  async changeNamespaces(namespaces: NamespaceSet): Promise<void> {
    this.#namespaces = namespaces;
    if (this.#opening) await this.#inner.changeNamespaces?.(namespaces);
  }

  async #start(): Promise<void> {
    const life = Symbol(this.name);
    // Before the pause, so that a stop during it ends this start, too.
    this.#life = life;
    await this.#closing;
    const context = this.#context;
    if (context === undefined) {
      throw new Error(
        `Cannot use the source "${this.name}": it is not started: register the workflow, or its sources, with a controller`,
      );
    }
    await this.#inner.start({
      ...context,
      namespaces: this.#namespaces,
      // Runs that wait for the source see its initial state.
      trigger: (key, event) => {
        const text = typeof key === "string" ? key : keyText(key);
        const isHeld = this.#holders.has(text) ||
          this.#holders.has(ALL_PRIMARIES);
        return this.#open && isHeld && context.trigger(key, event);
      },
    });
    if (this.#life === life) this.#open = true;
  }

  /**
   * Fails if the inner source does not sync, for example because its kind is
   * missing.
   */
  async #inTime(opening: Promise<void>): Promise<void> {
    const { clock = systemClock } = this.#context ?? {};
    const onTimeout = () => {
      const { message = "no error" } = this.#inner.health?.() ?? {};
      return new Error(
        `Cannot use the source "${this.name}": it has not synced within ${SYNC_TIMEOUT_MS} ms: received ${message}`,
      );
    };
    await deadline(opening, SYNC_TIMEOUT_MS, { clock, onTimeout });
  }

  /** Stops the inner source, even if it has not synced. */
  #stop(): Promise<void> {
    if (this.#opening === undefined) return this.#closing;
    this.#opening = undefined;
    this.#life = undefined;
    this.#open = false;
    const closed = this.#closing.then(() => this.#inner.stop());
    this.#closing = closed.catch(() => {});
    return closed;
  }
}

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

function crdName({ plural, group }: ResolvedKind): string {
  return `${plural}.${group}`;
}

/** Name of the presence of a kind: a definition may serve some versions only. */
function presenceName(kind: ResolvedKind): string {
  return `definition of ${crdName(kind)}/${kind.version}`;
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
  /** Processing of the last change; changes are processed one by one. */
  #following: Promise<void> = Promise.resolve();

  constructor(crdOf: ResolvedKind) {
    this.#crdOf = crdOf;
    this.name = presenceName(crdOf);
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
    // Others have installed it, perhaps long ago.
    context.log.info(
      present ? "A kind of others is served" : "A kind of others has gone",
      { crd },
    );
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
