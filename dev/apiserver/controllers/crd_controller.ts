import type { Timer, UntypedObject } from "@coracle/operator/client";
import { jsonEquals } from "@coracle/operator/internal";
import type { ApiContext } from "../api_context.ts";
import {
  CRD_CLEANUP_FINALIZER,
  CRDS,
  type CustomResources,
  type ResourceDefinition,
} from "../registry.ts";
import type { Collection } from "../storage/collection.ts";
import type { Change } from "../storage/history.ts";
import type { StoredObject } from "../storage/stored_object.ts";
import { deleteStored, updateStored } from "./internal_request.ts";
import { WorkQueue } from "./work_queue.ts";
import { writeJson } from "../exact_json.ts";

/** Fields of a CustomResourceDefinition that the controller reads. */
interface Crd extends UntypedObject {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly plural: string };
  };
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
    }[];
  };
}

/**
 * Definitions by the stored objects of their CRDs: a server that goes on from a
 * state of another one serves the same.
 */
const DEFINITIONS: WeakMap<StoredObject, ResourceDefinition> = new WeakMap();

type Status = NonNullable<Crd["status"]>;

/** Field manager of the writes. */
const MANAGER = "kube-apiserver";

/**
 * Controller of CustomResourceDefinitions: sets their status, serves the
 * established ones and deletes the objects of deleted ones.
 */
export class CrdController {
  readonly #context: ApiContext;
  readonly #crd: CustomResources;
  readonly #establishingDelay: number;
  /** Specs of the served resources, as JSON, by CRD name. */
  readonly #served: Map<string, string> = new Map();
  /** Timers of new definitions that are not established yet, by CRD name. */
  readonly #establishing: Map<string, Timer> = new Map();
  readonly #queue: WorkQueue<string>;

  /**
   * Creates the controller; it observes the store from now on.
   *
   * @param context Shared state of the server.
   * @param crd Functions that interpret CRDs.
   * @param establishingDelay Delay before a new definition is established, in milliseconds.
   */
  constructor(
    context: ApiContext,
    crd: CustomResources,
    establishingDelay: number,
  ) {
    this.#context = context;
    this.#crd = crd;
    this.#establishingDelay = establishingDelay;
    this.#queue = new WorkQueue(
      context,
      "Cannot serve a CRD",
      (name) => this.#reconcile(name),
    );
    context.store.listen((change, collection) =>
      this.#observe(change, collection)
    );
  }

  /** Serves the definitions of a loaded store immediately. */
  begin(): void {
    for (const { name } of this.#context.store.collection(CRDS).values()) {
      this.#queue.process(name);
    }
  }

  stop(): void {
    this.#queue.stop();
    for (const timer of this.#establishing.values()) timer.cancel();
    this.#establishing.clear();
  }

  #observe({ type, object }: Change, { resource }: Collection): void {
    if (resource.group === CRDS.group && resource.plural === CRDS.plural) {
      if (type === "DELETED") {
        this.#establishing.get(object.name)?.cancel();
        this.#establishing.delete(object.name);
        this.#stopServing(object.parse() as Crd);
      }
      if (type === "ADDED") this.#delayEstablishing(object.name);
      // Another definition may get the names that are free now.
      for (const { name } of this.#context.store.collection(CRDS).values()) {
        this.#queue.add(name);
      }
      return;
    }
    if (type !== "DELETED") return;
    const name = `${resource.plural}.${resource.group}`;
    if (this.#context.store.collection(CRDS).get(name)?.terminating) {
      this.#queue.add(name);
    }
  }

  #delayEstablishing(name: string): void {
    if (this.#establishingDelay === 0) return;
    const timer = this.#context.clock.setTimer(() => {
      this.#establishing.delete(name);
      this.#queue.add(name);
    }, this.#establishingDelay);
    this.#establishing.set(name, timer);
  }

  #reconcile(name: string): void {
    const collection = this.#context.store.collection(CRDS);
    const stored = collection.get(name);
    if (stored === undefined) return;
    if (stored.terminating) this.#cleanUp(stored);
    else this.#establish(stored, collection);
  }

  #establish(stored: StoredObject, collection: Collection): void {
    const crd = stored.parse() as Crd;
    const { name } = stored;
    const others = [...collection.values()]
      .filter((other) => other.name !== name).map((other) => other.parse());
    const now = this.#context.clock.wallTime();
    const next = this.#crd.nextCrdStatus(crd, others, now);
    const status = this.#establishing.has(name) ? installing(next) : next;
    if (!jsonEquals(status, crd.status)) {
      // The status change causes another call with the CRD.
      this.#writeStatus(stored, () => status);
    } else if (crd.status?.conditions?.some(isEstablished)) {
      this.#serve(crd, stored);
    }
  }

  #serve(crd: Crd, stored: StoredObject): void {
    const { name } = crd.metadata;
    const source = writeJson([crd.metadata.uid, crd.spec]);
    if (this.#served.get(name) === source) return;
    const { store, resources, watches } = this.#context;
    const definition = DEFINITIONS.get(stored) ??
      this.#crd.customResourceDefinition(crd, this.#context);
    // A conversion by webhooks is that of one server.
    if (definition.prepareConversion === undefined) {
      DEFINITIONS.set(stored, definition);
    }
    const before = this.#served.has(name);
    store.open(definition);
    resources.serve(definition);
    this.#served.set(name, source);
    // Open watches convert by the old schema; their clients reconnect.
    if (before) watches.endAll(store.collectionOf(definition));
  }

  #stopServing(crd: Crd): void {
    const { group, names } = crd.spec;
    const resource = { group, plural: names.plural };
    const { store, resources, watches } = this.#context;
    if (!this.#served.delete(crd.metadata.name)) return;
    resources.withdraw(resource);
    watches.endAll(store.collection(resource));
    store.drop(resource);
  }

  /** Deletes the objects of a definition, and then the definition. */
  #cleanUp(stored: StoredObject): void {
    const { metadata: { finalizers = [] }, spec } = stored.parse() as Crd;
    if (!finalizers.includes(CRD_CLEANUP_FINALIZER)) return;
    const { store, resources } = this.#context;
    const definition = resources.find(spec.group, spec.names.plural);
    if (definition !== undefined && this.#served.has(stored.name)) {
      const collection = store.collectionOf(definition);
      for (const object of [...collection.values()]) {
        if (!object.terminating) deleteStored(this.#context, object);
      }
      if (collection.size > 0) {
        this.#writeStatus(stored, inProgress);
        return;
      }
    }
    updateStored(this.#context, stored, {
      manager: MANAGER,
      next: (live) => {
        live.metadata.finalizers = finalizers.filter((finalizer) =>
          finalizer !== CRD_CLEANUP_FINALIZER
        );
        return live;
      },
    });
  }

  #writeStatus(stored: StoredObject, next: (status: Status) => unknown): void {
    updateStored(this.#context, stored, {
      manager: MANAGER,
      subresource: "status",
      next: (live) => ({ ...live, status: next((live as Crd).status ?? {}) }),
    });
  }
}

/** Status of a terminating definition that still has objects. */
function inProgress(status: Status): unknown {
  const reason = "InstanceDeletionInProgress";
  const message = "CustomResource deletion is in progress";
  return {
    ...status,
    conditions: (status.conditions ?? []).map((condition) =>
      condition.type === "Terminating"
        ? { ...condition, reason, message }
        : condition
    ),
  };
}

/** Status of a new definition with accepted names that is not yet established. */
function installing(status: unknown): unknown {
  const { conditions = [], ...rest } = status as Status;
  return {
    ...rest,
    conditions: conditions.map((condition) =>
      isEstablished(condition)
        ? { ...condition, status: "False", reason: "Installing" }
        : condition
    ),
  };
}

function isEstablished(
  { type, status }: { readonly type: string; readonly status: string },
): boolean {
  return type === "Established" && status === "True";
}
