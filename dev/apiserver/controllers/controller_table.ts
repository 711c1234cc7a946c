import type { ApiContext } from "../api_context.ts";
import {
  type ControllerDefinition,
  ControllerLoop,
} from "./controller_loop.ts";
import { ControllerApi } from "./controller_api.ts";
import type { ControllerName } from "./controller_names.ts";
import type { ServerContent } from "../storage/file_journal.ts";
import type { KeyPair } from "@coracle/operator/internal";
import { certificateSigner } from "./cluster/certificates.ts";
import {
  CLAIM_PROTECTION,
  CLAIMS,
  VOLUME_PROTECTION,
  VOLUMES,
} from "./cluster/volumes.ts";
import { STORAGE_MIGRATIONS } from "./cluster/storage_migration.ts";
import { DISRUPTION_BUDGETS } from "./cluster/disruption.ts";
import {
  ENDPOINT_MIRRORS,
  ENDPOINT_SLICES,
  ENDPOINTS,
  STALE_ENDPOINTS,
} from "./cluster/endpoints.ts";
import { createNodes, kubelet, NODE_REGISTRATION } from "./nodes/kubelet.ts";
import { SCHEDULER } from "./nodes/scheduler.ts";
import { CRON_JOBS } from "./workloads/cron_job.ts";
import { EXPIRED_JOBS, JOB_ORPHANS, JOBS } from "./workloads/job.ts";
import { DAEMON_SETS } from "./workloads/daemon_set.ts";
import { STATEFUL_SETS } from "./workloads/stateful_set.ts";
import { DEPLOYMENTS } from "./workloads/deployment.ts";
import {
  REPLICA_SETS,
  REPLICATION_CONTROLLERS,
} from "./workloads/replica_set.ts";

const CONTROLLERS: readonly ControllerDefinition[] = [
  DEPLOYMENTS,
  REPLICA_SETS,
  REPLICATION_CONTROLLERS,
  STATEFUL_SETS,
  DAEMON_SETS,
  JOBS,
  JOB_ORPHANS,
  EXPIRED_JOBS,
  CRON_JOBS,
  DISRUPTION_BUDGETS,
  ENDPOINT_SLICES,
  ENDPOINTS,
  STALE_ENDPOINTS,
  ENDPOINT_MIRRORS,
  VOLUMES,
  CLAIMS,
  VOLUME_PROTECTION,
  CLAIM_PROTECTION,
  STORAGE_MIGRATIONS,
];

/**
 * Starts the controllers that sync objects by key.
 *
 * @param context Shared state of the server.
 * @param options Selection of controllers, and the number of simulated nodes.
 */
export async function startControllers(
  context: ApiContext,
  { isEnabled, nodes, authority, isPart, turn }: {
    readonly isEnabled: (name: ControllerName) => boolean;
    /** Number of simulated nodes; undefined if pods do not run. */
    readonly nodes: number | undefined;
    /** Authority that signs certificates. */
    readonly authority: () => KeyPair;
    /** Whether the loaded objects are at rest, and a part of their cluster. */
    readonly isPart: boolean;
    readonly turn: ServerContent["turn"];
  },
): Promise<ControllerLoop> {
  const create = (count: number) =>
    createNodes(new ControllerApi(context, "kubelet"), count);
  const definitions = [...CONTROLLERS, certificateSigner(authority)].filter((
    { name },
  ) => isEnabled(name as ControllerName));
  if (nodes !== undefined) {
    definitions.push(NODE_REGISTRATION, SCHEDULER, kubelet(context));
    if (!isPart) await create(nodes);
  }
  const loop = new ControllerLoop(context, definitions, turn);
  if (!isPart) loop.begin();
  // Only what changes from now on is synced.
  else if (nodes !== undefined) await create(nodes);
  return loop;
}
