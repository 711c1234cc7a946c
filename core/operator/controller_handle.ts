import type { Kind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type { ControllerHealth } from "../controller/controller_health.ts";
import type { EventSource, PrimaryCache } from "../controller/event_source.ts";
import type { Namespaces } from "../controller/namespaces.ts";

/**
 * Handle of a registered controller.
 *
 * @typeParam P The type of its primaries.
 */
export interface ControllerHandle<
  P extends KubernetesObject = KubernetesObject,
> {
  /** Name of the controller, unique within the operator. */
  readonly name: string;
  /** Kind of the primaries. */
  readonly kind: Kind<P>;
  /** Cache of the primaries; reading it before the controller is started throws. */
  readonly primaries: PrimaryCache<P>;
  /** Changes the watched namespaces; resolves when their caches are synced. */
  changeNamespaces(namespaces: Namespaces): Promise<void>;
  /**
   * Triggers a run of a primary, like a change of the primary.
   *
   * @throws {TypeError} If no primary can have the key.
   */
  trigger(key: ObjectKey | string): void;
  /** Adds an event source; resolves when it has synced. */
  addSource(source: EventSource<P>): Promise<EventSource<P>>;
  /** Removes an event source and stops it. */
  removeSource(name: string): Promise<void>;
  /** Returns the health of the controller. */
  health(): ControllerHealth;
}

/** Handle of a job. */
export interface JobHandle {
  /** Name of the job, unique among the controllers of the operator. */
  readonly name: string;
  /** Causes a run, like an event of one of its sources. */
  trigger(): void;
  /** Returns the health of the job, as that of a controller. */
  health(): ControllerHealth;
}
