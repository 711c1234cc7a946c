import type { ResolvedKind } from "../api/kind.ts";
import { InformerPool } from "../cache/informer/informer_pool.ts";
import type { Client } from "../client/client.ts";
import { host } from "../client/host.ts";
import { traceRequests } from "../client/middleware.ts";
import type { ControllerDeps } from "../controller/controller.ts";
import type { ConcurrencyCap } from "../controller/run/concurrency_cap.ts";
import { historyLimit } from "../controller/run/run_observers.ts";
import type { Tracer } from "../tracing.ts";
import type { ManagedController } from "./controller_start.ts";
import type { Coordination } from "./coordination.ts";
import type { OperatorSettings } from "./operator_options.ts";
import { openRecording } from "./operator_recording.ts";
import { openSnapshots, skipsRuns } from "./operator_snapshots.ts";
import { operatorBudget } from "./process_memory.ts";

/** Creates what the controllers of an operator share, at its start. */
export async function sharedDeps(
  { settings, controllers, coordination, base, cap, isOnce, onMoved, signal }: {
    readonly settings: OperatorSettings;
    /** Controllers by name, also those that are registered later. */
    readonly controllers: ReadonlyMap<string, ManagedController>;
    readonly coordination: Coordination;
    /** Client whose writes do not depend on a lease. */
    readonly base: Client;
    readonly cap: ConcurrencyCap | undefined;
    readonly isOnce: boolean;
    readonly onMoved: (kind: ResolvedKind) => void;
    /** Signal that aborts when the operator stops. */
    readonly signal: AbortSignal | undefined;
  },
): Promise<ControllerDeps> {
  const { clock, logger, metrics, random, reconnect, cache, tracer } = settings;
  /** Field managers of the controllers, and the same in one order, each once. */
  let managers: Record<"given" | "sorted", readonly string[]> = {
    given: [],
    sorted: [],
  };
  return {
    ...settings,
    client: traced(coordination.client, tracer),
    unfenced: traced(base, tracer),
    informers: new InformerPool(base, {
      clock,
      logger,
      metrics,
      random,
      reconnect,
      onMoved,
      budget: operatorBudget(cache, { clock, log: logger }),
      snapshots: await openSnapshots(settings, base, signal),
    }),
    skipsRuns: skipsRuns(settings),
    historyLimit: () => historyLimit(controllers.size),
    fieldManagers: () => {
      const given = Array.from(
        controllers.values(),
        ({ settings }) => [settings.fieldManager, ...settings.takeOver],
      ).flat();
      const isSame = given.length === managers.given.length &&
        given.every((one, at) => one === managers.given[at]);
      if (!isSame) managers = { given, sorted: [...new Set(given)].sort() };
      return managers.sorted;
    },
    watches: (kind, selection) =>
      [...controllers.values()].some((one) => one.watches(kind, selection)),
    cap,
    log: logger,
    shard: coordination.shard,
    mayRun: () => coordination.mayRun,
    isLeading: () => coordination.isLeading,
    instance: host().hostname(),
    currentNamespace: base.namespace,
    isDeveloped: host().operators !== undefined,
    isOnce,
    recording: await openRecording(settings, base),
  };
}

/** A client whose requests are traced, if there is a tracer. */
export function traced(client: Client, tracer: Tracer | undefined): Client {
  return tracer === undefined ? client : client.with([traceRequests(tracer)]);
}
