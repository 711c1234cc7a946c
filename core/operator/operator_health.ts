import type { WebhookHealth } from "../admission/webhooks.ts";
import type { InformerPool } from "../cache/informer/informer_pool.ts";
import type { SyncProgress } from "../cache/informer/shared_informer.ts";
import type { ControllerHealth } from "../controller/controller_health.ts";
import type { ManagedController } from "./controller_start.ts";
import type { Coordination, LeaseHealth } from "./coordination.ts";
import { syncProgress } from "./sync_progress.ts";

/** Health of an operator. */
export interface OperatorHealth {
  /** Whether the operator was started and not stopped. */
  readonly started: boolean;
  /**
   * Whether the caches of all controllers are synced, and the Lease of this
   * replica could be read or renewed within the last lease duration.
   */
  readonly ready: boolean;
  /** Whether all informers and event sources, and the Lease, are healthy. */
  readonly healthy: boolean;
  /**
   * Whether this replica runs the controllers. With leader election, whether it
   * is the leader; with sharding, whether it is a member of its group. True until
   * the runs have ended during a stop.
   */
  readonly leading: boolean;
  /** Identity of the leader that was observed last, with leader election. */
  readonly leader: string | undefined;
  /** Health of the Lease; undefined without leader election and sharding. */
  readonly lease: LeaseHealth | undefined;
  /** Health of the webhooks; undefined without `admit` and `admission`. */
  readonly webhooks: WebhookHealth | undefined;
  /** Whether the process is close to its memory limit, if that is known. */
  readonly memoryIsShort: boolean;
  /** Caches that are not complete, which the operator waits for at its start. */
  readonly syncing: readonly SyncProgress[];
  /** Health of each controller. */
  readonly controllers: readonly ControllerHealth[];
}

/** Puts together the health of an operator. */
export function operatorHealth(
  { state, controllers: all, informers, coordination, webhooks }: {
    readonly state: "stopped" | "starting" | "started" | "stopping";
    readonly controllers: Iterable<
      Pick<ManagedController, "health" | "remoteInformers">
    >;
    readonly informers: InformerPool | undefined;
    readonly coordination: Coordination | undefined;
    readonly webhooks: WebhookHealth | undefined;
  },
): OperatorHealth {
  const followed = [...all];
  const controllers = followed.map((controller) => controller.health());
  const { pressure, used = 0 } = informers?.budget ?? {};
  pressure?.measure(used);
  const started = state === "started";
  const lease = coordination?.health();
  const canLead = lease?.healthy ?? true;
  return {
    started,
    ready: started && canLead && webhooks?.ready !== false &&
      controllers.every(({ ready }) => ready),
    healthy: canLead && webhooks?.error === undefined &&
      controllers.every(({ healthy }) => healthy),
    leading: state !== "stopped" && coordination?.isLeading === true,
    leader: coordination?.leader,
    lease,
    webhooks,
    memoryIsShort: pressure?.isHigh ?? false,
    syncing: syncProgress(informers, followed),
    controllers,
  };
}

/** Health with counts and names only, without texts of errors. */
export function withoutTexts(
  { lease, webhooks, controllers, ...others }: OperatorHealth,
): OperatorHealth {
  return {
    ...others,
    lease: lease && { ...lease, error: undefined },
    webhooks: webhooks && { ...webhooks, error: undefined },
    controllers: controllers.map((
      { informers, sources, clusters, ...counts },
    ) => ({
      ...counts,
      ...(clusters && {
        clusters: clusters.map((one) => ({ ...one, error: undefined })),
      }),
      informers: informers.map((informer) => ({
        ...informer,
        watches: informer.watches.map((watch) => ({
          ...watch,
          lastError: undefined,
        })),
      })),
      sources: new Map(
        Array.from(sources, ([name, { status }]) => [name, { status }]),
      ),
    })),
  };
}
