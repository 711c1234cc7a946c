import { ApiError } from "../api/api_error.ts";
import { microTimestamp } from "../api/timestamp.ts";
import type { Client } from "../client/client.ts";
import type { Clock } from "../clock.ts";
import { Lease } from "./lease_lock.ts";
import type { ShardMember } from "./shard_view.ts";

const GROUP_LABEL = "coracle.dev/shard-group";
const VIEW_ANNOTATION = "coracle.dev/shard-view";

/** Which group, and who is in it. */
export interface ShardLeasesOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly namespace: string;
  /** The name of the group. */
  readonly name: string;
  /** Who this member is; unique among all. */
  readonly identity: string;
  /** How long a member that says nothing more counts as living. */
  readonly leaseDuration: number;
}

/** A member as its Lease shows it. */
export interface LeasedMember extends ShardMember {
  /** Changes whenever the member says something. */
  readonly resourceVersion: string;
  /** How long it counts as living since then, in milliseconds. */
  readonly duration: number;
}

/** The Leases by which the members of a group tell that they live. */
export class ShardLeases {
  readonly #options: ShardLeasesOptions;

  /** @param options Which group, and who is in it. */
  constructor(options: ShardLeasesOptions) {
    this.#options = options;
  }

  /** Says that this member lives, and by which view. */
  async publish(view: readonly string[], signal: AbortSignal): Promise<void> {
    const { client, clock, identity, leaseDuration } = this.#options;
    const { name: group } = this.#options;
    const { name, namespace } = this.#key;
    await client.apply(Lease, {
      metadata: {
        name,
        namespace,
        labels: { [GROUP_LABEL]: group },
        annotations: { [VIEW_ANNOTATION]: JSON.stringify(view) },
      },
      spec: {
        holderIdentity: identity,
        leaseDurationSeconds: Math.max(1, Math.round(leaseDuration / 1_000)),
        renewTime: microTimestamp(clock.wallTime()),
      },
    }, { signal, force: true });
  }

  /** What all members say, whether they live or not. */
  async members(signal: AbortSignal): Promise<readonly LeasedMember[]> {
    const { client, namespace, name } = this.#options;
    const labelSelector = `${GROUP_LABEL}=${name}`;
    const { items } = await client.list(Lease, {
      namespace,
      labelSelector,
      signal,
    });
    return items.map(({ metadata, spec = {} }) => ({
      identity: spec.holderIdentity ?? "",
      view: viewOf(metadata.annotations?.[VIEW_ANNOTATION]),
      resourceVersion: metadata.resourceVersion ?? "",
      duration: (spec.leaseDurationSeconds ?? 1) * 1_000,
    }));
  }

  /** Takes away what a member has said, this one or one that is long dead. */
  async remove(identity: string, signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    try {
      await client.delete(Lease, this.#keyOf(identity), { signal });
    } catch (error) {
      if (!ApiError.is(error) || !error.isNotFound) throw error;
    }
  }

  get #key(): { readonly namespace: string; readonly name: string } {
    return this.#keyOf(this.#options.identity);
  }

  #keyOf(
    identity: string,
  ): { readonly namespace: string; readonly name: string } {
    const { namespace, name } = this.#options;
    return { namespace, name: `${name}-${identity}` };
  }
}

/** What cannot be read is taken for nothing: the member then waits for it. */
function viewOf(text: string | undefined): readonly string[] {
  try {
    const view: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(view)
      ? view.filter((name) => typeof name === "string")
      : [];
  } catch {
    return [];
  }
}
