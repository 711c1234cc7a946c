import { ApiError } from "../api/api_error.ts";
import { microTimestamp } from "../api/timestamp.ts";
import { Lease, type LeaseHolder, leaseSeconds } from "./lease_lock.ts";
import type { ShardMember } from "./shard_view.ts";

const GROUP_LABEL = "coracle.dev/shard-group";
const VIEW_ANNOTATION = "coracle.dev/shard-view";

/** Which group, and who is in it. */
export interface ShardLeasesOptions extends LeaseHolder {
  /** The name of the group. */
  readonly name: string;
}

/** A member as its Lease shows it. */
export interface LeasedMember extends ShardMember {
  /** Changes whenever the member says something. */
  readonly resourceVersion: string;
  /** How long it counts as living since then, in milliseconds. */
  readonly duration: number;
}

/**
 * The Leases by which the members of a group tell that they live.
 *
 * Every write names the version that it follows, so that one which was given up,
 * and reaches the server late, never undoes a later one.
 */
export class ShardLeases {
  readonly #options: ShardLeasesOptions;
  /** The version that our last write made; undefined when it is not known. */
  #version: string | undefined;

  /** @param options Which group, and who is in it. */
  constructor(options: ShardLeasesOptions) {
    this.#options = options;
  }

  /**
   * Says that this member lives, and by which view.
   *
   * @returns Whether there was something to renew; otherwise others may have
   * taken the member for one that had left.
   */
  async publish(
    view: readonly string[],
    signal: AbortSignal,
  ): Promise<boolean> {
    const { client } = this.#options;
    const resourceVersion = this.#version ?? await this.#read(signal);
    // Should the write fail, it may have arrived all the same.
    this.#version = undefined;
    const lease = this.#lease(view);
    const renewed = resourceVersion !== undefined &&
      await this.#replace(lease, resourceVersion, signal);
    if (renewed) return true;
    const { metadata } = await client.create(Lease, lease, { signal });
    this.#version = metadata.resourceVersion;
    return false;
  }

  /**
   * What all members say, whether they live or not, at a moment between the
   * call and its answer.
   */
  async members(signal: AbortSignal): Promise<readonly LeasedMember[]> {
    const { client, namespace, name } = this.#options;
    const labelSelector = `${GROUP_LABEL}=${name}`;
    // Without a resourceVersion the server answers with its latest state.
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

  /** Takes away what this member has said. */
  async leave(signal: AbortSignal): Promise<void> {
    const { identity } = this.#options;
    const resourceVersion = this.#version ?? await this.#read(signal);
    if (resourceVersion === undefined) return;
    await this.remove({ identity, resourceVersion }, signal);
  }

  /** Takes away what a member has said, if it has said nothing since. */
  async remove(
    member: Pick<LeasedMember, "identity" | "resourceVersion">,
    signal: AbortSignal,
  ): Promise<void> {
    const { identity, resourceVersion } = member;
    try {
      await this.#options.client.delete(Lease, this.#key(identity), {
        preconditions: { resourceVersion },
        signal,
      });
    } catch (error) {
      if (!ApiError.is(error) || !error.isNotFound) throw error;
    }
  }

  /** @returns Whether there was still something to replace. */
  async #replace(
    lease: Lease,
    resourceVersion: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    const metadata = { ...lease.metadata, resourceVersion };
    try {
      const written = await this.#options.client.replace(
        Lease,
        { ...lease, metadata },
        { signal },
      );
      this.#version = written.metadata.resourceVersion;
      return true;
    } catch (error) {
      if (ApiError.is(error) && error.isNotFound) return false;
      throw error;
    }
  }

  async #read(signal: AbortSignal): Promise<string | undefined> {
    const { client, identity } = this.#options;
    const lease = await client.find(Lease, this.#key(identity), { signal });
    return lease?.metadata.resourceVersion;
  }

  #lease(view: readonly string[]): Lease {
    const { clock, identity, leaseDuration, name } = this.#options;
    return {
      metadata: {
        ...this.#key(identity),
        labels: { [GROUP_LABEL]: name },
        annotations: { [VIEW_ANNOTATION]: JSON.stringify(view) },
      },
      spec: {
        holderIdentity: identity,
        leaseDurationSeconds: leaseSeconds(leaseDuration),
        renewTime: microTimestamp(clock.wallTime()),
      },
    };
  }

  #key(
    identity: string,
  ): { readonly namespace: string; readonly name: string } {
    const { namespace, name } = this.#options;
    return { namespace, name: `${name}-${identity}` };
  }
}

/** A view that somebody has spoilt by hand is taken for an empty one. */
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
