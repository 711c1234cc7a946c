import { setImmediate } from "node:timers";
import type {
  KubernetesObject,
  ResolvedKind,
  Timer,
} from "@coracle/operator/client";
import type { ApiContext } from "../api_context.ts";
import { StatusError } from "../status.ts";
import type { Collection } from "../storage/collection.ts";
import type { Change } from "../storage/history.ts";
import { storageKey, type StoredObject } from "../storage/stored_object.ts";
import type { ServerContent } from "../storage/file_journal.ts";
import { ControllerApi, controllerOf, decodeForNow } from "./controller_api.ts";
import { RETRY_MS } from "./work_queue.ts";

/** Number of keys processed before other tasks of the event loop run. */
const SLICE = 64;

/**
 * Function that reconciles one object, which is shared and must not be changed.
 *
 * @returns Milliseconds until the next sync without a change; undefined for no
 * further sync.
 */
export type Sync = (
  object: KubernetesObject,
  api: ControllerApi,
  /** Schedules another sync of the object. */
  wake: () => void,
) => Promise<number | undefined | void>;

/** Controller of one kind, as in kube-controller-manager. */
export interface ControllerDefinition {
  /** Name of the controller, as in the flag `--controllers` of kube-controller-manager. */
  readonly name: string;
  /** Kind of the objects that the controller syncs. */
  readonly kind: ResolvedKind;
  /**
   * Field manager of the controller's writes.
   *
   * @default {"kube-controller-manager"}
   */
  readonly manager?: string;
  /** Whether the controller syncs an object; by default it syncs all. */
  readonly concerns?: (object: StoredObject) => boolean;
  /** Kinds whose objects the controller manages by owner references and, without an owner, by labels. */
  readonly owns?: readonly ResolvedKind[];
  /** Other kinds whose changes cause syncs, with the keys of the objects to sync. */
  readonly watches?: readonly {
    readonly kind: ResolvedKind;
    keys(change: Change, api: ControllerApi): Iterable<string>;
  }[];
  readonly sync: Sync;
  /** Removes a deleted object from the state of the controller; must not write to the store. */
  readonly removed?: (last: StoredObject) => void;
  /** Releases the resources of the controller. */
  readonly stop?: () => void;
}

interface Running {
  readonly definition: ControllerDefinition;
  readonly api: ControllerApi;
}

interface Item {
  readonly controller: Running;
  readonly key: string;
  timer?: Timer | undefined;
  failures: number;
}

type Observer = (change: Change) => void;

/**
 * Loop of the controllers: a queue of keys over the changes of the store. One
 * key is synced at a time, so controllers never see a partial write.
 */
export class ControllerLoop {
  readonly #context: ApiContext;
  readonly #definitions: readonly ControllerDefinition[];
  readonly #observers: Map<string, Observer[]> = new Map();
  /** Waiting keys, in order. */
  readonly #queue: Map<string, Item> = new Map();
  /** Keys with a timer or failures. */
  readonly #delayed: Map<string, Item> = new Map();
  readonly #turn: ServerContent["turn"];
  /** Revision of the store at the last turn. */
  #seen = -1;
  #running = false;
  #stopped = false;

  /**
   * Creates the loop; it observes the store from now on.
   *
   * @param context Shared state of the server.
   * @param definitions Controllers to run.
   * @param turn Waits before a sync, if something has changed since the last one.
   */
  constructor(
    context: ApiContext,
    definitions: readonly ControllerDefinition[],
    turn?: ServerContent["turn"],
  ) {
    this.#context = context;
    this.#definitions = definitions;
    this.#turn = turn;
    for (const definition of definitions) this.#add(definition);
    if (definitions.length === 0) return;
    context.store.listen((change, collection) =>
      this.#observe(change, collection)
    );
  }

  #add(definition: ControllerDefinition): void {
    const { kind, manager = "kube-controller-manager" } = definition;
    const api = new ControllerApi(this.#context, manager);
    const controller: Running = { definition, api };
    const { concerns = () => true } = definition;
    this.#on(kind, ({ type, object }) => {
      if (!concerns(object)) return;
      if (type !== "DELETED") this.#enqueue(controller, object.key);
      else this.#forget(controller, object);
    });
    for (const owned of definition.owns ?? []) {
      this.#on(owned, (change) => this.#observeOwned(controller, change));
    }
    for (const { kind, keys } of definition.watches ?? []) {
      this.#on(kind, (change) => {
        for (const key of keys(change, api)) this.#enqueue(controller, key);
      });
    }
  }

  #on({ group, plural }: ResolvedKind, observer: Observer): void {
    const id = `${group}/${plural}`;
    this.#observers.set(id, [...this.#observers.get(id) ?? [], observer]);
  }

  #observe(change: Change, { resource: { group, plural } }: Collection): void {
    if (this.#stopped) return;
    const observers = this.#observers.get(`${group}/${plural}`);
    for (const observer of observers ?? []) observer(change);
  }

  /** Enqueues the managers of an object, or the objects that may adopt it. */
  #observeOwned(controller: Running, { type, object, previous }: Change): void {
    const { kind, group } = controller.definition.kind;
    const collection = this.#context.store.collection(
      controller.definition.kind,
    );
    if (collection.size === 0) return;
    const { namespace } = object;
    const before = controllerOf(previous?.owners);
    const now = controllerOf(object.owners);
    for (const owner of before?.uid === now?.uid ? [now] : [before, now]) {
      if (owner?.kind !== kind || !owner.apiVersion.startsWith(group)) continue;
      this.#enqueue(controller, storageKey({ namespace, name: owner.name }));
    }
    if (now !== undefined || type === "DELETED") return;
    const changed = previous === undefined || before !== undefined ||
      JSON.stringify(previous.labels) !== JSON.stringify(object.labels);
    if (!changed) return;
    for (const { key } of collection.scan({ namespace })) {
      this.#enqueue(controller, key);
    }
  }

  /** Syncs all objects of a loaded store. */
  begin(): void {
    this.#context.store.replay((change, collection) =>
      this.#observe(change, collection)
    );
  }

  #enqueue(controller: Running, key: string): void {
    const id = idOf(controller, key);
    const item = this.#delayed.get(id) ?? { controller, key, failures: 0 };
    item.timer?.cancel();
    item.timer = undefined;
    this.#queue.set(id, item);
    this.#start();
  }

  #forget(controller: Running, removed: StoredObject): void {
    const id = idOf(controller, removed.key);
    this.#delayed.get(id)?.timer?.cancel();
    this.#delayed.delete(id);
    this.#queue.delete(id);
    controller.definition.removed?.(removed);
  }

  #start(): void {
    if (this.#running || this.#stopped) return;
    this.#running = true;
    queueMicrotask(() => void this.#run());
  }

  async #run(): Promise<void> {
    for (let done = 1; !this.#stopped; done++) {
      if (this.#isDue) await this.#takeTurn();
      const [next] = this.#queue;
      if (next === undefined) break;
      this.#queue.delete(next[0]);
      await this.#process(next[0], next[1]);
      if (done % SLICE === 0) {
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
    }
    this.#running = false;
    if (this.#queue.size > 0) this.#start();
  }

  /** Whether clients are to see a change before the next sync. */
  get #isDue(): boolean {
    return this.#turn !== undefined && this.#queue.size > 0 &&
      this.#context.store.revision !== this.#seen;
  }

  async #takeTurn(): Promise<void> {
    await this.#turn?.();
    this.#seen = this.#context.store.revision;
  }

  async #process(id: string, item: Item): Promise<void> {
    const { controller, key } = item;
    const { definition, api } = controller;
    let delay: number | undefined;
    try {
      const stored = this.#context.store.collection(definition.kind).get(key);
      if (stored !== undefined) {
        const wake = () => this.#enqueue(controller, key);
        const object = decodeForNow(stored);
        delay = await definition.sync(object, api, wake) ?? undefined;
      }
      item.failures = 0;
    } catch (error) {
      if (isEndOfNamespace(error)) return;
      delay = Math.min(RETRY_MS.first * 2 ** item.failures, RETRY_MS.longest);
      item.failures++;
      const { name } = definition;
      this.#context.logger.debug("Cannot sync", { name, key, error });
    }
    if (delay === undefined) {
      this.#delayed.delete(id);
      return;
    }
    // A key that waits again is synced soon anyway, and keeps its failures.
    this.#delayed.set(id, item);
    if (this.#stopped || this.#queue.has(id)) return;
    item.timer = this.#context.clock.setTimer(() => {
      this.#enqueue(controller, key);
    }, delay);
  }

  /** Cancels all timers and ignores later changes. */
  stop(): void {
    this.#stopped = true;
    this.#queue.clear();
    for (const { timer } of this.#delayed.values()) timer?.cancel();
    this.#delayed.clear();
    for (const { stop } of this.#definitions) stop?.();
  }
}

function idOf({ definition: { name, kind } }: Running, key: string): string {
  return `${name} ${kind.plural} ${key}`;
}

/** Whether a write failed because its namespace is being deleted. */
function isEndOfNamespace(error: unknown): boolean {
  return error instanceof StatusError &&
    error.status.details?.causes?.some(({ reason }) =>
        reason === "NamespaceTerminating"
      ) === true;
}
