import type { KubernetesObject } from "../api/object.ts";
import type { EventSource } from "./event_source.ts";

/** The event sources of a controller, which may come and go while it runs. */
export interface SourceRegistry<P extends KubernetesObject = KubernetesObject> {
  /** The source of a name, if there is one. */
  named(name: string): EventSource<P> | undefined;
  /**
   * Adds a source and starts it.
   *
   * @returns The source of that name, which may have been there before;
   * fulfilled when it has synced.
   */
  add(source: EventSource<P>): Promise<EventSource<P>>;
  /** Takes a source away and stops it. */
  remove(name: string): Promise<void>;
}
