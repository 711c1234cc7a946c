import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import type { PodHooks } from "./pods/pod_hooks.ts";
import type { Random } from "./random.ts";
import type { WatchHub } from "./read/watch_hub.ts";
import type { User } from "./request/user.ts";
import type { Resources } from "./resources.ts";
import type { FeatureGates } from "./feature_gates.ts";
import type { Store } from "./storage/store.ts";

/** What the handlers of one server share. */
export interface ApiContext {
  readonly store: Store;
  readonly resources: Resources;
  readonly watches: WatchHub;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** What is to be had beyond the version that is followed. */
  readonly featureGates: FeatureGates;
  /** What runs in pods. */
  readonly pods: PodHooks;
  /** Who bears a token; undefined if nobody does. */
  authenticate(token: string): User | undefined;
}

/** A time as objects carry it: to the second. */
export function timestamp(wallTime: number): string {
  return `${new Date(wallTime).toISOString().slice(0, 19)}Z`;
}
