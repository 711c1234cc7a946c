import type { Measure } from "./bench.ts";
import { verify } from "./bench.ts";
import { startGoRival } from "./go_rivals.ts";
import type { PodServer } from "./pod_server.ts";

/** What `bench/go` tells when its cache is complete, and at the end. */
interface Followed {
  readonly size: number;
  /** The newest resourceVersion that an event told. */
  readonly version: string;
  readonly measures: readonly Measure[];
}

/** What the informer of client-go took to sync. */
export async function goSync(server: PodServer): Promise<Followed> {
  const rival = startGoRival("follow", server.url, "0");
  rival.endInput(server.authority);
  return await rival.next() as Followed;
}

/** What the informer of client-go took to follow changes once it had synced. */
export async function goEvents(
  server: PodServer,
  { objects, events }: { readonly objects: number; readonly events: number },
): Promise<Followed> {
  const rival = startGoRival("follow", server.url, String(events));
  rival.endInput(server.authority);
  const synced = await rival.next() as Followed;
  verify(synced.size === objects, "every Pod must be there");
  server.send();
  return await rival.next() as Followed;
}
