import type { Kind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type { ControllerHealth } from "../controller/controller.ts";
import type { Namespaces } from "../controller/namespaces.ts";
import type { EventSource, PrimaryCache } from "../controller/event_source.ts";

/** A controller of an operator, as its program sees it. */
export interface ControllerHandle<
  P extends KubernetesObject = KubernetesObject,
> {
  /** Its name, unique within the operator. */
  readonly name: string;
  /** The kind of its primaries. */
  readonly kind: Kind<P>;
  /** The primaries that it knows, once it was started. */
  readonly primaries: PrimaryCache<P>;
  /** Watches other namespaces from now on; fulfilled when that is done. */
  changeNamespaces(namespaces: Namespaces): Promise<void>;
  /** Makes a primary run, as a change of it would. */
  trigger(key: ObjectKey | string): void;
  /** Adds an event source; fulfilled when it has synced. */
  addSource(source: EventSource<P>): Promise<EventSource<P>>;
  /** Takes an event source away and stops it. */
  removeSource(name: string): Promise<void>;
  /** How it fares. */
  health(): ControllerHealth;
}
