import { inShard, type ParsedShardSelector } from "../../api/shard_selector.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import type { ReflectorSink } from "./reflector_sink.ts";

/**
 * Lets through what belongs to a shard. A server that knows shard selectors sends
 * nothing else; from one that does not, the rest is dropped before it is stored,
 * by its header alone. An object never changes its shard.
 */
export function shardSink(
  sink: ReflectorSink,
  selector: ParsedShardSelector,
): ReflectorSink {
  const isOurs = (header: ObjectHeader) => inShard(selector, header);
  return {
    beginState: () => sink.beginState(),
    item(header) {
      if (isOurs(header)) sink.item(header);
    },
    endState: (resourceVersion) => sink.endState(resourceVersion),
    change(type, header) {
      if (isOurs(header)) sink.change(type, header);
    },
    progress: (resourceVersion) => sink.progress(resourceVersion),
    rest: () => sink.rest(),
  };
}
