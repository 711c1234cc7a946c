import { type Clock, Quantity } from "@coracle/operator/client";
import { jsonEquals } from "@coracle/operator/internal";
import type { ResourceQuota } from "@coracle/operator/kinds";
import type { GroupResource } from "../registry.ts";
import type { Collection } from "../storage/collection.ts";
import type { Change } from "../storage/history.ts";
import type { Store } from "../storage/store.ts";
import type { StoredObject } from "../storage/stored_object.ts";
import { type Amounts, difference, sum } from "./pod_resources.ts";
import { inScopes, isIgnored, usageOf } from "./quota_usage.ts";

const QUOTAS: GroupResource = { group: "", plural: "resourcequotas" };

/** Quota with the amounts in use. */
export interface QuotaState {
  readonly quota: ResourceQuota;
  /** Amounts in use, by the names of `spec.hard`. */
  readonly used: Amounts;
}

interface Tracked extends QuotaState {
  quota: ResourceQuota;
  readonly used: Map<string, Quantity>;
  /**
   * Amounts of each object that are in `used`: what an object uses may depend on
   * the time, and all of it is given back.
   */
  readonly charges: Map<string, Amounts>;
}

/** Change of a quota that is not yet in its status. */
export interface QuotaChange {
  readonly namespace: string;
  readonly name: string;
  /** Whether `status.hard` must be set to `spec.hard`. */
  readonly hard: boolean;
  /** Whether a client wrote another status, which only a resync corrects. */
  readonly foreign?: boolean;
  /** Whether a write was charged; its status update is recorded as kube-apiserver's. */
  readonly charged: boolean;
}

const NOTHING: readonly QuotaState[] = Object.freeze([]);

/**
 * Usage of every ResourceQuota, kept current with each change of the store. In
 * a namespace without quotas, a change costs one look-up.
 */
export class QuotaTracker {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #namespaces: Map<string, Map<string, Tracked>> = new Map();
  #changed: (change: QuotaChange) => void = () => {};

  /**
   * Creates the tracker; it observes the store from now on.
   *
   * @param store Storage.
   * @param clock Clock of the server.
   */
  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    store.listen((change, collection) => this.#observe(change, collection));
  }

  /** Starts to report changes of usage and limits, beginning with those of all quotas. */
  report(changed: (change: QuotaChange) => void): void {
    this.#changed = changed;
    for (const stored of this.#store.collection(QUOTAS).values()) {
      this.#track(stored);
    }
  }

  /** Quotas of a namespace, in the order of their names. */
  of(namespace: string | undefined): readonly QuotaState[] {
    const quotas = this.#namespaces.get(namespace ?? "");
    return quotas === undefined ? NOTHING : [...quotas.values()];
  }

  #observe(change: Change, { resource }: Collection): void {
    const { type, object } = change;
    const isQuota = resource.plural === QUOTAS.plural && resource.group === "";
    if (this.#namespaces.size === 0 && !isQuota) return;
    const quotas = this.#namespaces.get(object.namespace);
    if (quotas !== undefined && !isIgnored(resource)) {
      for (const [name, tracked] of quotas) {
        const lost = refund(tracked, resource, object);
        const charged = type !== "DELETED" &&
          this.#charge(tracked, resource, object);
        if (!charged && !lost) continue;
        const { namespace } = object;
        this.#changed({ namespace, name, hard: false, charged });
      }
    }
    if (isQuota) this.#observeQuota(change, quotas?.get(object.name));
  }

  #observeQuota({ type, object }: Change, known: Tracked | undefined): void {
    if (type === "DELETED") {
      const quotas = this.#namespaces.get(object.namespace);
      quotas?.delete(object.name);
      if (quotas?.size === 0) this.#namespaces.delete(object.namespace);
      return;
    }
    const quota = object.parse() as unknown as ResourceQuota;
    if (known === undefined || !jsonEquals(known.quota.spec, quota.spec)) {
      this.#track(object);
      return;
    }
    known.quota = quota;
    if (jsonEquals(quota.status?.hard, quota.spec?.hard)) return;
    const { namespace, name } = object;
    this.#changed({
      namespace,
      name,
      hard: true,
      charged: false,
      foreign: true,
    });
  }

  /** Measures the usage of a quota. */
  #track(stored: StoredObject): void {
    const { namespace, name } = stored;
    const quota = stored.parse() as unknown as ResourceQuota;
    const names = Object.keys(quota.spec?.hard ?? {});
    const zero = Quantity.parse("0");
    const tracked: Tracked = {
      quota,
      used: new Map(names.map((name) => [name, zero])),
      charges: new Map(),
    };
    for (const { resource } of this.#store.collections()) {
      if (isIgnored(resource)) continue;
      const collection = this.#store.collection(resource);
      for (const object of collection.scan({ namespace })) {
        this.#charge(tracked, resource, object);
      }
    }
    const others = this.#namespaces.get(namespace) ?? new Map();
    const sorted = [...others].filter(([other]) => other !== name);
    sorted.push([name, tracked]);
    sorted.sort(([a], [b]) => a < b ? -1 : 1);
    this.#namespaces.set(namespace, new Map(sorted));
    this.#changed({ namespace, name, hard: true, charged: false });
  }

  /** Adds the usage of an object; returns whether it uses anything. */
  #charge(
    { quota, used, charges }: Tracked,
    resource: GroupResource,
    stored: StoredObject,
  ): boolean {
    const read = () => stored.parse();
    if (!inScopes(quota, resource, read)) return false;
    const now = this.#clock.wallTime();
    const usage = [...usageOf(resource, read, now)].filter(([name, { nano }]) =>
      used.has(name) && nano !== 0n
    );
    if (usage.length === 0) return false;
    for (const [name, amount] of usage) {
      used.set(name, sum(used.get(name), amount));
    }
    charges.set(chargeId(resource, stored), new Map(usage));
    return true;
  }
}

/** Subtracts what was charged for an object; returns whether that was anything. */
function refund(
  { used, charges }: Tracked,
  resource: GroupResource,
  stored: StoredObject,
): boolean {
  const id = chargeId(resource, stored);
  const charge = charges.get(id);
  if (charge === undefined) return false;
  for (const [name, amount] of charge) {
    const known = used.get(name);
    if (known) used.set(name, difference(known, amount));
  }
  return charges.delete(id);
}

function chargeId(
  { group, plural }: GroupResource,
  { key }: StoredObject,
): string {
  return `${group}/${plural}/${key}`;
}
