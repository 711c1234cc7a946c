import type { Timer } from "@coracle/operator/client";
import type { ResourceQuota } from "@coracle/operator/kinds";
import type { QuotaChange } from "../admission/quota_tracker.ts";
import type { ApiContext } from "../api_context.ts";
import { updateStored } from "./internal_request.ts";
import { WorkQueue } from "./work_queue.ts";

const QUOTAS = { group: "", plural: "resourcequotas" };

/** Milliseconds until a status that a client wrote is corrected. */
const RESYNC_MS = 5 * 60_000;

/** Quota controller: writes limits and usage into the status of ResourceQuotas. */
export class QuotaController {
  readonly #context: ApiContext;
  readonly #queue: WorkQueue<QuotaChange>;
  /** Quotas whose `status.hard` is outdated, by namespace and name. */
  readonly #outdated: Set<string> = new Set();
  /** Quotas whose status a client wrote. */
  readonly #foreign: Map<string, QuotaChange> = new Map();
  #resync: Timer | undefined;

  /**
   * Creates the controller.
   *
   * @param context Shared state of the server.
   */
  constructor(context: ApiContext) {
    this.#context = context;
    this.#queue = new WorkQueue(
      context,
      "Cannot write the status of a quota",
      (change) => this.#write(change),
    );
  }

  /** Starts the controller with all quotas of the store. */
  begin(): void {
    this.#context.quotas.report((change) => {
      const key = `${change.namespace}/${change.name}`;
      if (change.foreign) {
        if (this.#outdated.has(key)) return;
        this.#foreign.set(key, change);
        this.#resync ??= this.#context.clock.setTimer(
          () => this.#correct(),
          RESYNC_MS,
        );
        return;
      }
      if (change.hard) this.#outdated.add(key);
      this.#queue.add(change, key);
    });
  }

  stop(): void {
    this.#queue.stop();
    this.#resync?.cancel();
  }

  /** Writes the status of quotas whose status a client wrote. */
  #correct(): void {
    this.#resync = undefined;
    for (const [key, change] of this.#foreign) {
      this.#outdated.add(key);
      this.#queue.add(change, key);
    }
    this.#foreign.clear();
  }

  #write({ namespace, name, charged }: QuotaChange): void {
    const { quotas, store } = this.#context;
    const key = `${namespace}/${name}`;
    const state = quotas.of(namespace).find(({ quota }) =>
      quota.metadata?.name === name
    );
    const stored = store.collection(QUOTAS).get(key);
    if (state === undefined || stored === undefined) return;
    const used = Object.fromEntries(
      [...state.used].map(([resource, amount]) => [resource, `${amount}`]),
    );
    updateStored(this.#context, stored, {
      manager: charged ? "kube-apiserver" : "kube-controller-manager",
      subresource: "status",
      next: (live) => {
        const { spec, status } = live as unknown as ResourceQuota;
        const hard = this.#outdated.has(key) ? spec?.hard : status?.hard;
        return { ...live, status: { hard: hard ?? {}, used } };
      },
    });
    this.#outdated.delete(key);
  }
}
