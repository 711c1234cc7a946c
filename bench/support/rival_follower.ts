import type { Measure } from "./bench.ts";
import { verify } from "./bench.ts";
import { startRival, type Toolchain } from "./built_rivals.ts";
import type { PodServer } from "./pod_server.ts";

/** Output of a rival when its cache is complete, and at the end. */
interface Followed {
  readonly size: number;
  /** Newest resourceVersion of an event. */
  readonly version: string;
  readonly measures: readonly Measure[];
}

/** Measures of a rival's informer for a sync. */
export async function rivalSync(
  toolchain: Toolchain,
  server: PodServer,
): Promise<Followed> {
  const rival = startRival(toolchain, "follow", server.url, "0");
  rival.endInput(server.authority);
  return await rival.next() as Followed;
}

/** Measures of a rival's informer for changes after the sync. */
export async function rivalEvents(
  toolchain: Toolchain,
  server: PodServer,
  { objects, events }: { readonly objects: number; readonly events: number },
): Promise<Followed> {
  const rival = startRival(toolchain, "follow", server.url, String(events));
  rival.endInput(server.authority);
  const synced = await rival.next() as Followed;
  verify(synced.size === objects, "every Pod must be there");
  server.send();
  return await rival.next() as Followed;
}
