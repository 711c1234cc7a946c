/**
 * State of an operator for the page of `coracle dev` and `coracle ui`. It is
 * read from the controllers on request, and contains no field of an object
 * except its conditions.
 *
 * @module
 */
import { durationText } from "../api/duration.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { InformerPool } from "../cache/informer/informer_pool.ts";
import type { Clock, Timer } from "../clock.ts";
import { shortText } from "../error_text.ts";
import type { ObjectHistory } from "../controller/object_history.ts";
import type { ManagedController } from "./controller_start.ts";
import type { LeaseHealth } from "./coordination.ts";
import { SYSTEM } from "./process_memory.ts";

/** Maximum number of objects shown per controller: those that ran last. */
const MAX_OBJECTS = 200;
/** Maximum number of writes of a run, and of conditions of an object. */
const MAX_ITEMS = 20;
/** Maximum length of a text from an object, in UTF-16 code units. */
const MAX_TEXT = 500;
/** Delay of the timer that measures the lag of the event loop, in milliseconds. */
const LAG_TIMER_MS = 20;

/** Lag of the event loop, measured only after a request for it. */
export class LoopLag {
  readonly #clock: Clock;
  #last: number | undefined;
  #timer: Timer | undefined;

  /** Creates a meter for the clock of the operator. */
  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the latest lag in milliseconds, and begins a measurement. */
  read(): number | undefined {
    if (this.#timer === undefined) {
      const due = this.#clock.now() + LAG_TIMER_MS;
      this.#timer = this.#clock.setTimer(() => {
        this.#last = Math.max(0, this.#clock.now() - due);
        this.#timer = undefined;
      }, LAG_TIMER_MS);
    }
    return this.#last;
  }

  /** Ends a measurement in progress. */
  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

/** Returns the state of an operator as plain data. */
export function inspection(
  { state, controllers, informers, lag, lease }: {
    readonly state: string;
    readonly controllers: Iterable<ManagedController>;
    readonly informers: InformerPool | undefined;
    /** Lag of the event loop; undefined while the operator does not run. */
    readonly lag: LoopLag | undefined;
    /** Health of the Lease; undefined without leader election and sharding. */
    readonly lease: LeaseHealth | undefined;
  },
): object {
  const { used = 0, allowed = 0 } = informers?.budget ?? {};
  return {
    state,
    lag: lag?.read(),
    memory: { resident: SYSTEM.used(), cache: used, budget: allowed },
    caches: Array.from(
      informers?.usage() ?? [],
      ([kind, usage]) => ({ kind, ...usage }),
    ),
    controllers: Array.from(
      controllers,
      (controller) => inspectController(controller, lease),
    ),
  };
}

function inspectController(
  controller: ManagedController,
  lease: LeaseHealth | undefined,
): object {
  const { informers, sources, ...health } = controller.health();
  const watches = informers.flatMap(({ kind, watches }) =>
    watches.flatMap(({ namespace, state, lastError, consecutiveFailures }) =>
      consecutiveFailures === 0 || state === "watching" ? [] : [
        `watch of ${kind}${
          namespace === undefined ? "" : ` in ${namespace}`
        }: ${lastError?.message ?? "no contact"}`,
      ]
    )
  );
  const broken = [...sources].flatMap(([name, { status, message }]) =>
    status === "unhealthy" ? [`source ${name}: ${message ?? status}`] : []
  );
  const lacking = (health.clusters ?? []).flatMap(({ name, error }) =>
    error === undefined ? [] : [`cluster ${name}: ${error}`]
  );
  // Without its Lease no controller of this replica runs.
  const lost = lease?.error === undefined ? [] : [
    `Lease ${lease.name} for ${durationText(lease.failingFor)}: ${lease.error}`,
  ];
  return {
    ...health,
    faults: [...lost, ...watches, ...broken, ...lacking.slice(0, MAX_ITEMS)],
    workflow: controller.settings.workflow?.toMermaid?.(),
    objects: controller.recent(MAX_OBJECTS).map(({ runs, ...history }) => ({
      ...history,
      ...(history.known && conditionsOf(controller, history)),
      runs: runs.slice(-1).map(({ changes: _, ...run }) => ({
        ...run,
        writes: run.writes.slice(0, MAX_ITEMS),
      })),
    })),
  };
}

/** Conditions of an object with shortened texts, and whether it is deleted. */
function conditionsOf(
  controller: ManagedController,
  { object }: Pick<ObjectHistory, "object">,
): object {
  const { metadata, status } = (controller.current(object) ?? {}) as
    & Partial<KubernetesObject>
    & { readonly status?: { readonly conditions?: unknown } };
  const list = status?.conditions;
  const conditions = (Array.isArray(list) ? list : []).slice(0, MAX_ITEMS);
  return {
    deleting: metadata?.deletionTimestamp !== undefined,
    conditions: conditions.map((condition) =>
      Object.fromEntries(
        ["type", "status", "reason", "message"].map((field) => [
          field,
          shortText(String(condition?.[field] ?? ""), MAX_TEXT),
        ]),
      )
    ),
  };
}
