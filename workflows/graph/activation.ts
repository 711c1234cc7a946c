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
import { crdName, CrdPresence } from "./crd_presence.ts";
import {
  asVerdict,
  type NodeContext,
  type Verdict,
  type WorkflowNode,
} from "./node.ts";
import type { Kind } from "../../core/api/kind.ts";
import type { OwnWrite } from "../../core/cache/informer/shared_informer.ts";

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
  /** Presences by name of the definition. */
  readonly #presences: ReadonlyMap<string, CrdPresence<P>>;

  constructor(nodes: readonly WorkflowNode<P>[]) {
    const users = new Map<EventSource<P>, WorkflowNode<P>[]>();
    const presences = new Map<string, CrdPresence<P>>();
    for (const node of nodes) {
      for (const source of new Set(node.dependent.sources)) {
        users.set(source, [...users.get(source) ?? [], node]);
      }
      const { activeWhen } = node.when;
      if (typeof activeWhen !== "object") continue;
      const name = crdName(activeWhen.crdOf);
      presences.set(
        name,
        presences.get(name) ?? new CrdPresence(activeWhen.crdOf),
      );
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
      ? this.#presences.get(crdName(when.activeWhen.crdOf))
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
  /** Whether the initial events of the inner source are over. */
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
        if (this.#open && isHeld) context.trigger(key, event);
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
