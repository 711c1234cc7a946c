import type { KubernetesObject } from "../../api/object.ts";
import type { ObjectKey } from "../../api/object_key.ts";
import type { EventSource, SourceRegistry } from "../event_source.ts";

/**
 * Reads a secondary from one source in a run, as `ctx.get` reads it from all of its
 * kind.
 */
export function getFrom<P extends KubernetesObject, S>(
  { sources }: { readonly sources: SourceRegistry<P> },
  source: EventSource<P, S>,
  key: ObjectKey,
): S | undefined | Promise<S | undefined> {
  // The context of a test may have another registry.
  const { getFrom } = Object(sources) as {
    getFrom?(from: EventSource<P, S>, key: ObjectKey): ReturnType<
      NonNullable<EventSource<P, S>["get"]>
    >;
  };
  return getFrom === undefined
    ? source.get?.(key)
    : getFrom.call(sources, source, key);
}
