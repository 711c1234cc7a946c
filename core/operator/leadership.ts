import { hostname } from "node:os";
import type { KubernetesObject } from "../api/object.ts";
import type { ResolvedKind } from "../api/kind.ts";
import type { Client } from "../client/client.ts";
import type { Verb } from "../client/request.ts";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import {
  LeaderElection,
  type LeaderElectionOptions,
  leaseTimes,
} from "./leader_election.ts";
import { Lease, LeaseLock } from "./lease_lock.ts";

/** What {@linkcode Leadership} works with. */
export interface LeadershipSetting {
  readonly options: LeaderElectionOptions;
  /** Reaches the Lease whether or not this replica leads. */
  readonly client: Client;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  /** Called when this replica begins to lead, and when it leads no more. */
  readonly onChange: (leading: boolean) => void;
}

/** The verbs that change something. */
const WRITES: ReadonlySet<Verb> = new Set<Verb>([
  "create",
  "update",
  "patch",
  "delete",
  "deletecollection",
  "connect",
]);

/** Asks whether an account may do something. */
interface AccessReview extends KubernetesObject {
  spec: { resourceAttributes: Record<string, string> };
  status?: { allowed: boolean } | undefined;
}

const ACCESS_REVIEW: ResolvedKind<AccessReview> = {
  group: "authorization.k8s.io",
  version: "v1",
  kind: "SelfSubjectAccessReview",
  plural: "selfsubjectaccessreviews",
  scope: "Cluster",
};

/**
 * Whether this replica leads, and what follows from it: only the leader runs
 * what waits, and only its writes get through.
 */
export class Leadership {
  readonly #setting: LeadershipSetting;
  readonly #election: LeaderElection;
  readonly #namespace: string;
  /** Fires when this replica leads no more. */
  #term = new AbortController();

  /**
   * @param setting What it works with.
   * @throws {TypeError | RangeError | SyntaxError} If an option makes no sense.
   */
  constructor(setting: LeadershipSetting) {
    const { options, client, clock, random, log, onChange } = setting;
    const times = leaseTimes(options);
    const identity = options.identity ??
      `${hostname()}_${crypto.randomUUID().slice(0, 8)}`;
    this.#setting = setting;
    this.#namespace = options.namespace ?? client.namespace;
    this.#election = new LeaderElection({
      lock: new LeaseLock({
        client,
        clock,
        namespace: this.#namespace,
        name: options.name,
        identity,
        leaseDuration: times.leaseDuration,
      }),
      identity,
      times,
      clock,
      random,
      log,
      onStarted: () => {
        this.#term = new AbortController();
        onChange(true);
      },
      onStopped: () => {
        this.#term.abort(notLeading());
        onChange(false);
      },
      onNewLeader: (leader) => log.info("A leader was elected", { leader }),
    });
  }

  /** Whether this replica leads. */
  get isLeading(): boolean {
    return this.#election.isLeading;
  }

  /** Who leads, as far as it is known. */
  get leader(): string | undefined {
    return this.#election.leader;
  }

  /**
   * A client whose writes only get through while this replica leads for certain;
   * those that are under way when it leads no more are ended.
   */
  fenced(client: Client): Client {
    return client.with([(next) => (request) => {
      if (!WRITES.has(request.verb)) return next(request);
      if (!this.#election.holds) return Promise.reject(notLeading());
      const { signal } = this.#term;
      return next({
        ...request,
        signal: request.signal
          ? AbortSignal.any([request.signal, signal])
          : signal,
      });
    }]);
  }

  /**
   * Becomes a candidate.
   *
   * @throws {Error} If the right to use the Lease is missing.
   */
  async start(): Promise<void> {
    const { client, options } = this.#setting;
    const missing: string[] = [];
    for (const verb of ["get", "create", "update"]) {
      const review = await client.create(ACCESS_REVIEW, {
        metadata: {},
        spec: {
          resourceAttributes: {
            verb,
            group: Lease.group,
            resource: Lease.plural,
            namespace: this.#namespace,
            // The right to create cannot be limited to a name.
            ...(verb !== "create" && { name: options.name }),
          },
        },
      });
      if (review.status?.allowed !== true) missing.push(verb);
    }
    if (missing.length > 0) {
      throw new Error(
        `Cannot elect a leader by Lease ${this.#namespace}/${options.name}: the right is missing, so give the operator's account a Role in namespace ${this.#namespace} with { apiGroups: ["${Lease.group}"], resources: ["${Lease.plural}"], verbs: ["get", "create", "update"] }: received no right to ${
          missing.join(", ")
        }`,
      );
    }
    this.#election.start();
  }

  /** Gives the leadership back and is no candidate any more. */
  stop(): Promise<void> {
    return this.#election.stop();
  }
}

function notLeading(): Error {
  return new Error(
    "Cannot write: this replica does not lead, or not for certain: received a write",
  );
}
