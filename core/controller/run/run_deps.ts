import type { Clock } from "../../clock.ts";
import type { ResolvedKind } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import type { Client } from "../../client/client.ts";
import type { Logger } from "../../logger.ts";
import type { EventRecorder } from "../event_recorder.ts";
import type { Primaries } from "../watch/primary_source.ts";
import type { MaybePromise } from "../reconciler.ts";
import type { SourceGroup } from "../watch/source_group.ts";
import type { ApplyMemory } from "./apply_memory.ts";
import type { Ownership } from "./owner.ts";
import type { WriteObserver } from "./write_loop.ts";

/** Dependencies of the contexts of all runs of a controller. */
export interface RunDeps<P extends KubernetesObject> {
  readonly controller: string;
  /** Name of the cluster; undefined for the operator's own. */
  readonly cluster?: string | undefined;
  readonly kind: ResolvedKind<P>;
  readonly fieldManager: string;
  /** Field managers whose fields become the controller's. */
  readonly takeOver: readonly string[];
  /** Finalizer of the controller, even if it adds none to primaries. */
  readonly finalizer: string;
  /** Finalizer that the controller adds to its primaries; undefined if none. */
  readonly keptFinalizer: string | undefined;
  /** Whether the cache of primaries leaves out more than managed fields. */
  readonly cacheIsPartial: boolean;
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  readonly primaries: Primaries<P>;
  readonly sources: SourceGroup<P>;
  readonly recorder: EventRecorder;
  readonly ownership: Ownership<P>;
  /** Memory of applies, loaded on first use. */
  readonly applied: () => MaybePromise<ApplyMemory>;
  readonly writeObserver: WriteObserver;
}
