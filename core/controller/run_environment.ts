import type { ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { Client } from "../client/client.ts";
import type { Logger } from "../logger.ts";
import type { ApplyMemory } from "./apply_memory.ts";
import type { EventRecorder } from "./event_recorder.ts";
import type { PrimarySource } from "./primary_source.ts";
import type { StoredWrite } from "./result_writer.ts";
import type { Run } from "./run.ts";
import type { SourceGroup } from "./source_group.ts";

/** What all runs of a controller share. */
export interface RunEnvironment<P extends KubernetesObject> {
  readonly controller: string;
  readonly kind: ResolvedKind<P>;
  readonly fieldManager: string;
  /** The finalizer of the controller, whether it uses one or not. */
  readonly finalizer: string;
  /** Whether the cache of primaries leaves out more than managed fields. */
  readonly cacheIsPartial: boolean;
  readonly client: Client;
  readonly log: Logger;
  readonly primaries: PrimarySource<P>;
  readonly sources: SourceGroup<P>;
  readonly recorder: EventRecorder;
  /** What was applied; loaded when it is first needed. */
  readonly applied: () => Promise<ApplyMemory>;
  /** Told of every write that the server stored. */
  readonly onWrite: (run: Run<P>, write: StoredWrite) => void;
}
