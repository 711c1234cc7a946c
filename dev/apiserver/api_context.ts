import type { Clock, Logger } from "@coracle/operator/client";
import type { Authenticator } from "./access/authenticator.ts";
import type { RoleAuthorizer } from "./access/role_authorizer.ts";
import type { ServiceAccountTokens } from "./access/service_account_tokens.ts";
import type { QuotaTracker } from "./admission/quota_tracker.ts";
import type { PodHooks } from "./pods/pod_hooks.ts";
import type { WebhookCaller } from "./admission/webhook_caller.ts";
import type { FlowControl } from "./flow_control.ts";
import type { KubernetesRelease } from "./kubernetes_release.ts";
import type { Random } from "./random.ts";
import type { WatchHub } from "./read/watch_hub.ts";
import type { Resources } from "./resources.ts";
import type { FeatureGates } from "./feature_gates.ts";
import type { Store } from "./storage/store.ts";

/** Runner of the ordered admission plug-ins, implemented by `AdmissionChain`. */
export interface AdmissionRunner {
  /**
   * Runs one phase on attributes made by `attributesOf`.
   *
   * @throws {StatusError} If a plug-in rejects the request.
   */
  run(phase: "mutate" | "validate", attributes: object): void;
}

/** State shared by the request handlers of one server. */
export interface ApiContext {
  readonly store: Store;
  readonly resources: Resources;
  readonly watches: WatchHub;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Release of Kubernetes that the server reproduces. */
  readonly release: KubernetesRelease;
  /** Feature gates. */
  readonly featureGates: FeatureGates;
  /** Hooks for logs, programs and ports of pods. */
  readonly pods: PodHooks;
  /** Admission plug-ins. */
  readonly admission: AdmissionRunner;
  /** Usage of the ResourceQuotas. */
  readonly quotas: QuotaTracker;
  /** Priority and fairness of requests. */
  readonly flows: Pick<FlowControl, "headers" | "provide" | "seats">;
  /** Client of webhooks. */
  readonly webhooks: WebhookCaller;
  readonly authenticator: Authenticator;
  readonly authorizer: RoleAuthorizer;
  /** Tokens of service accounts. */
  readonly accountTokens: ServiceAccountTokens;
}
