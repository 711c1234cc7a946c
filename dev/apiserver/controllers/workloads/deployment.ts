import { jsonEquals, mutableCopy } from "@coracle/operator/internal";
import {
  Deployment,
  type DeploymentCondition,
  type DeploymentStatus,
  Pod,
  type PodTemplateSpec,
  ReplicaSet,
} from "@coracle/operator/kinds";
import { StatusError } from "../../status.ts";
import {
  type ControllerApi,
  controllerOf,
  controllerReference,
} from "../controller_api.ts";
import type { ControllerDefinition } from "../controller_loop.ts";
import { templateHash } from "../../hashes.ts";
import { withCondition, withoutCondition } from "../conditions.ts";
import { byAge, isFinished, scaled } from "./pods.ts";

const HASH_LABEL = "pod-template-hash";
const REVISION = "deployment.kubernetes.io/revision";
const REVISION_HISTORY = "deployment.kubernetes.io/revision-history";
const DESIRED = "deployment.kubernetes.io/desired-replicas";
const MAX = "deployment.kubernetes.io/max-replicas";
/** Annotations of a Deployment that are not copied to its ReplicaSets. */
const NOT_COPIED: ReadonlySet<string> = new Set([
  "kubectl.kubernetes.io/last-applied-configuration",
  REVISION,
  REVISION_HISTORY,
  DESIRED,
  MAX,
  "deprecated.deployment.rollback.to",
]);
/** Conditions by reason: status and message; `%s` stands for a subject. */
const CONDITIONS = {
  MinimumReplicasAvailable: ["True", "Deployment has minimum availability."],
  MinimumReplicasUnavailable: [
    "False",
    "Deployment does not have minimum availability.",
  ],
  DeploymentPaused: ["Unknown", "Deployment is paused"],
  DeploymentResumed: ["Unknown", "Deployment is resumed"],
  FoundNewReplicaSet: ["True", 'Found new replica set "%s"'],
  NewReplicaSetCreated: ["True", 'Created new replica set "%s"'],
  ReplicaSetCreateError: ["False", "Failed to create new replica set %s"],
  NewReplicaSetAvailable: ["True", "%s has successfully progressed."],
  ReplicaSetUpdated: ["True", "%s is progressing."],
  ProgressDeadlineExceeded: ["False", "%s has timed out progressing."],
} as const;

type Reason = keyof typeof CONDITIONS;

/** Value for no limit. */
const NO_LIMIT = 2 ** 31 - 1;

/** Controller of Deployments. */
export const DEPLOYMENTS: ControllerDefinition = {
  name: "deployment-controller",
  kind: Deployment,
  owns: [ReplicaSet],
  watches: [{
    // A Recreate rollout waits until the last old pod is gone.
    kind: Pod,
    *keys({ type, object }, api) {
      const owner = type === "DELETED"
        ? controllerOf(object.owners)
        : undefined;
      if (owner?.kind !== "ReplicaSet") return;
      const { namespace } = object;
      const set = api.get(ReplicaSet, { namespace, name: owner.name });
      const manager = controllerOf(set?.metadata.ownerReferences);
      if (manager?.kind === "Deployment") yield `${namespace}/${manager.name}`;
    },
  }],
  sync: (object, api) => new Rollout(object as Deployment, api).sync(),
};

function replicasOf({ spec }: ReplicaSet): number {
  return spec?.replicas ?? 1;
}

function sum(
  sets: readonly (ReplicaSet | undefined)[],
  count: (set: ReplicaSet) => number | undefined,
): number {
  return sets.reduce((total, set) => total + (set && count(set) || 0), 0);
}

function revisionOf({ metadata }: ReplicaSet): number {
  return Number(metadata.annotations?.[REVISION]) || 0;
}

function withoutHash(template: PodTemplateSpec | undefined): unknown {
  const copy = mutableCopy(template);
  delete copy?.metadata?.labels?.[HASH_LABEL];
  return copy;
}

/** One sync of a Deployment. */
class Rollout {
  #deployment: Deployment;
  readonly #api: ControllerApi;
  /** ReplicaSet of the current template. */
  #current: ReplicaSet | undefined;
  #old: ReplicaSet[] = [];

  constructor(deployment: Deployment, api: ControllerApi) {
    this.#deployment = deployment;
    this.#api = api;
  }

  get #spec(): Deployment["spec"] {
    return this.#deployment.spec;
  }

  get #replicas(): number {
    return this.#spec.replicas ?? 1;
  }

  get #isRolling(): boolean {
    return this.#spec.strategy?.type !== "Recreate";
  }

  get #surge(): number {
    const { maxSurge = "25%" } = this.#spec.strategy?.rollingUpdate ?? {};
    return this.#isRolling ? scaled(maxSurge, this.#replicas, "up") : 0;
  }

  get #unavailable(): number {
    if (!this.#isRolling || this.#replicas === 0) return 0;
    const { maxUnavailable = "25%" } = this.#spec.strategy?.rollingUpdate ?? {};
    const count = scaled(maxUnavailable, this.#replicas, "down");
    // Rounding must not block a rollout.
    return count === 0 && this.#surge === 0
      ? 1
      : Math.min(count, this.#replicas);
  }

  get #all(): ReplicaSet[] {
    return this.#current ? [...this.#old, this.#current] : this.#old;
  }

  get #deadline(): number | undefined {
    const { progressDeadlineSeconds: seconds } = this.#spec;
    return seconds === undefined || seconds === NO_LIMIT ? undefined : seconds;
  }

  async sync(): Promise<number | undefined> {
    const { selector, paused = false } = this.#spec;
    const { matchLabels = {}, matchExpressions = [] } = selector;
    if (Object.keys(matchLabels).length + matchExpressions.length === 0) return;
    const sets = await this.#api.claim(
      ReplicaSet,
      Deployment,
      this.#deployment,
      selector,
    );
    sets.sort(byAge);
    const template = withoutHash(this.#spec.template);
    this.#current = sets.find(({ spec }) =>
      jsonEquals(withoutHash(spec?.template), template)
    );
    this.#old = sets.filter((set) => set !== this.#current);
    if (this.#deployment.metadata.deletionTimestamp) {
      await this.#writeStatus(this.#status());
      return;
    }
    await this.#notePause(paused);
    if (paused || this.#isScaled()) {
      if (this.#current) await this.#syncCurrent(false);
      await this.#scale();
      if (paused) await this.#cleanUp();
      await this.#writeStatus(this.#status());
      return;
    }
    if (this.#isRolling) await this.#roll();
    else await this.#recreate();
    return await this.#report();
  }

  /** Whether the number of replicas changed since the ReplicaSets were scaled. */
  #isScaled(): boolean {
    return this.#all.some((set) => {
      const desired = set.metadata.annotations?.[DESIRED];
      return replicasOf(set) > 0 && /^\d+$/.test(desired ?? "") &&
        Number(desired) !== this.#replicas;
    });
  }

  async #notePause(paused: boolean): Promise<void> {
    if (this.#deadline === undefined) return;
    const { reason } = this.#condition("Progressing") ?? {};
    if (reason === "ProgressDeadlineExceeded") return;
    if (paused === (reason === "DeploymentPaused")) return;
    await this.#setProgress(paused ? "DeploymentPaused" : "DeploymentResumed");
  }

  #condition(type: string): DeploymentCondition | undefined {
    return this.#deployment.status?.conditions?.find((condition) =>
      condition.type === type
    );
  }

  #newCondition(reason: Reason, subject = ""): DeploymentCondition {
    const { time } = this.#api;
    const [status, message] = CONDITIONS[reason];
    return {
      type: reason.startsWith("Minimum") ? "Available" : "Progressing",
      status,
      lastUpdateTime: time,
      lastTransitionTime: time,
      reason,
      message: message.replace("%s", () => subject),
    };
  }

  async #setProgress(reason: Reason, subject?: string): Promise<void> {
    const before = this.#deployment.status ?? {};
    const condition = this.#newCondition(reason, subject);
    await this.#writeStatus({
      ...before,
      conditions: withCondition(before.conditions, condition),
    });
  }

  async #writeStatus(status: DeploymentStatus): Promise<void> {
    this.#deployment =
      await this.#api.setStatus(Deployment, this.#deployment, status) ??
        this.#deployment;
  }

  /** Sets revision and annotations of the current ReplicaSet; creates the ReplicaSet if requested. */
  async #syncCurrent(create: boolean): Promise<void> {
    const revision = Math.max(0, ...this.#old.map(revisionOf)) + 1;
    const { minReadySeconds } = this.#spec;
    const set = this.#current;
    if (set === undefined) {
      if (create) await this.#createCurrent(revision);
      return;
    }
    const annotations = this.#annotations(set, revision);
    if (
      !jsonEquals(annotations, set.metadata.annotations ?? {}) ||
      (set.spec?.minReadySeconds ?? 0) !== (minReadySeconds ?? 0)
    ) {
      this.#current = await this.#api.update(ReplicaSet, set, (draft) => {
        draft.metadata.annotations = annotations;
        Object.assign(draft.spec ?? {}, { minReadySeconds });
      }) ?? set;
    }
    await this.#setRevision(annotations[REVISION]);
    if (this.#deadline === undefined || this.#condition("Progressing")) return;
    await this.#setProgress("FoundNewReplicaSet", set.metadata.name);
  }

  /** Annotations of the current ReplicaSet, with those of the Deployment. */
  #annotations(
    set: ReplicaSet | undefined,
    revision: number,
  ): Record<string, string> {
    const annotations = { ...set?.metadata.annotations };
    const own = this.#deployment.metadata.annotations ?? {};
    for (const [name, value] of Object.entries(own)) {
      if (!NOT_COPIED.has(name)) annotations[name] = value;
    }
    const before = annotations[REVISION];
    if ((Number(before) || 0) < revision) {
      annotations[REVISION] = String(revision);
      if (before !== undefined) {
        const { [REVISION_HISTORY]: history = "" } = annotations;
        annotations[REVISION_HISTORY] = (history ? `${history},` : "") + before;
      }
    }
    if (set === undefined) Object.assign(annotations, this.#sizeAnnotations());
    return annotations;
  }

  #sizeAnnotations(): Record<string, string> {
    return {
      [DESIRED]: String(this.#replicas),
      [MAX]: String(this.#replicas + this.#surge),
    };
  }

  async #setRevision(revision: string | undefined): Promise<void> {
    const { annotations } = this.#deployment.metadata;
    if (revision === undefined || annotations?.[REVISION] === revision) return;
    // With the status, as upstream: an update would raise the generation.
    this.#deployment =
      await this.#api.update(Deployment, this.#deployment, ({ metadata }) => {
        metadata.annotations = {
          ...metadata.annotations,
          [REVISION]: revision,
        };
      }, "status") ?? this.#deployment;
  }

  async #createCurrent(revision: number): Promise<void> {
    const { metadata: { name, namespace }, status } = this.#deployment;
    const { template, selector, minReadySeconds } = this.#spec;
    const hash = templateHash(withoutHash(template), status?.collisionCount);
    const labels = { ...template.metadata?.labels, [HASH_LABEL]: hash };
    const setName = `${name}-${hash}`;
    try {
      this.#current = await this.#api.create(ReplicaSet, {
        metadata: {
          name: setName,
          namespace,
          labels,
          annotations: this.#annotations(undefined, revision),
          ownerReferences: [controllerReference(Deployment, this.#deployment)],
        },
        spec: {
          replicas: this.#isRolling ? this.#sizeOfCurrent(0) : this.#replicas,
          ...(minReadySeconds && { minReadySeconds }),
          selector: {
            ...selector,
            matchLabels: { ...selector.matchLabels, [HASH_LABEL]: hash },
          },
          template: { ...template, metadata: { ...template.metadata, labels } },
        },
      });
    } catch (error) {
      if (error instanceof StatusError && error.status.code === 409) {
        await this.#writeStatus({
          ...status,
          collisionCount: (status?.collisionCount ?? 0) + 1,
        });
      } else if (this.#deadline !== undefined) {
        const { message } = error as Error;
        const subject = `"${setName}": ${message}`;
        await this.#setProgress("ReplicaSetCreateError", subject);
      }
      throw error;
    }
    await this.#setRevision(String(revision));
    if (this.#deadline === undefined) return;
    await this.#setProgress("NewReplicaSetCreated", setName);
  }

  /** Size that the current ReplicaSet can have without exceeding the surge. */
  #sizeOfCurrent(size: number): number {
    const room = this.#replicas + this.#surge - sum(this.#all, replicasOf);
    return room <= 0 ? size : size + Math.min(room, this.#replicas - size);
  }

  async #resize(set: ReplicaSet, replicas: number): Promise<ReplicaSet> {
    const sizes = this.#sizeAnnotations();
    const { annotations = {} } = set.metadata;
    if (
      replicasOf(set) === replicas &&
      Object.entries(sizes).every(([name, value]) =>
        annotations[name] === value
      )
    ) return set;
    const changed = await this.#api.update(ReplicaSet, set, (draft) => {
      if (draft.spec) draft.spec.replicas = replicas;
      draft.metadata.annotations = { ...draft.metadata.annotations, ...sizes };
    }) ?? set;
    if (set === this.#current) this.#current = changed;
    else this.#old = this.#old.map((one) => one === set ? changed : one);
    return changed;
  }

  /** Scales without a rollout: in proportion, if several ReplicaSets have pods. */
  async #scale(): Promise<void> {
    const active = this.#all.filter((set) => replicasOf(set) > 0);
    const only = active.length === 1
      ? active[0]
      : active.length === 0
      ? this.#current ?? this.#old.at(-1)
      : undefined;
    if (only) {
      await this.#resize(only, this.#replicas);
      return;
    }
    if (active.length === 0) return;
    const current = this.#current;
    const isSaturated = current && replicasOf(current) === this.#replicas &&
      current.metadata.annotations?.[DESIRED] === String(this.#replicas) &&
      current.status?.availableReplicas === this.#replicas;
    if (isSaturated) {
      for (const set of this.#old) {
        if (replicasOf(set) > 0) await this.#resize(set, 0);
      }
      return;
    }
    if (!this.#isRolling) return;
    const limit = this.#replicas > 0 ? this.#replicas + this.#surge : 0;
    const toAdd = limit - sum(active, replicasOf);
    active.sort((a, b) =>
      replicasOf(b) - replicasOf(a) || (toAdd > 0 ? byAge(b, a) : byAge(a, b))
    );
    let added = 0;
    const sizes = active.map((set) => {
      const part = this.#share(set, toAdd - added);
      added += part;
      return replicasOf(set) + part;
    });
    for (const [index, set] of active.entries()) {
      const rest = index === 0 ? toAdd - added : 0;
      await this.#resize(set, Math.max(0, (sizes[index] ?? 0) + rest));
    }
  }

  /** Share of a ReplicaSet in the pods to add or, if negative, to remove. */
  #share(set: ReplicaSet, left: number): number {
    const size = replicasOf(set);
    if (this.#replicas === 0) return Math.max(-size, left);
    const before = Number(set.metadata.annotations?.[MAX]) ||
      (this.#deployment.status?.replicas ?? 0);
    if (before === 0 || left === 0) return 0;
    const part = Math.round(size * (this.#replicas + this.#surge) / before) -
      size;
    return left > 0 ? Math.min(part, left) : Math.max(part, left);
  }

  async #roll(): Promise<void> {
    await this.#syncCurrent(true);
    const current = this.#current;
    if (current === undefined) return;
    const size = replicasOf(current);
    const wanted = size > this.#replicas
      ? this.#replicas
      : this.#sizeOfCurrent(size);
    if (wanted !== size) {
      await this.#resize(current, wanted);
      return;
    }
    if (await this.#shrinkOld(current)) return;
    if (this.#isComplete(this.#deployment.status)) await this.#cleanUp();
  }

  /** Scales old ReplicaSets down as far as the availability of pods permits. */
  async #shrinkOld(current: ReplicaSet): Promise<boolean> {
    const least = this.#replicas - this.#unavailable;
    const availableOf = ({ status }: ReplicaSet) => status?.availableReplicas;
    const missing = replicasOf(current) - (availableOf(current) ?? 0);
    let removable = sum(this.#all, replicasOf) - least - missing;
    if (removable <= 0 || sum(this.#old, replicasOf) === 0) return false;
    let shrunk = false;
    // Pods that are not available go first: availability does not suffer.
    for (const set of [...this.#old]) {
      const excess = Math.min(
        removable,
        replicasOf(set) - (availableOf(set) ?? 0),
      );
      if (excess <= 0) continue;
      await this.#resize(set, replicasOf(set) - excess);
      removable -= excess;
      shrunk = true;
    }
    let spare = sum(this.#all, availableOf) - least;
    for (const set of [...this.#old]) {
      const excess = Math.min(spare, replicasOf(set));
      if (excess <= 0) continue;
      await this.#resize(set, replicasOf(set) - excess);
      spare -= excess;
      shrunk = true;
    }
    return shrunk;
  }

  async #recreate(): Promise<void> {
    if (this.#current) await this.#syncCurrent(false);
    const active = this.#old.filter((set) => replicasOf(set) > 0);
    for (const set of active) await this.#resize(set, 0);
    if (active.length > 0 || this.#hasOldPods()) return;
    if (!this.#current) await this.#syncCurrent(true);
    if (this.#current) await this.#resize(this.#current, this.#replicas);
    if (this.#isComplete(this.#deployment.status)) await this.#cleanUp();
  }

  /** Whether pods of old ReplicaSets still run, or terminate. */
  #hasOldPods(): boolean {
    if (sum(this.#old, ({ status }) => status?.replicas) > 0) return true;
    return this.#old.some((set) =>
      this.#api.managed(Pod, set).some((pod) => !isFinished(pod))
    );
  }

  /** Deletes old ReplicaSets beyond the history limit, the oldest revisions first. */
  async #cleanUp(): Promise<void> {
    const { revisionHistoryLimit: limit = 10 } = this.#spec;
    const old = this.#old.filter(({ metadata }) => !metadata.deletionTimestamp);
    if (limit === NO_LIMIT || old.length <= limit) return;
    old.sort((a, b) => revisionOf(a) - revisionOf(b) || byAge(a, b));
    for (const set of old.slice(0, old.length - limit)) {
      const { metadata, status } = set;
      const isSettled = (status?.replicas ?? 0) === 0 &&
        replicasOf(set) === 0 &&
        (metadata.generation ?? 0) <= (status?.observedGeneration ?? 0);
      if (isSettled) await this.#api.delete(ReplicaSet, set);
    }
  }

  #isComplete(status: DeploymentStatus = {}): boolean {
    const { updatedReplicas = 0, replicas = 0, availableReplicas = 0 } = status;
    return updatedReplicas === this.#replicas && replicas === this.#replicas &&
      availableReplicas === this.#replicas &&
      (status.observedGeneration ?? 0) >=
        (this.#deployment.metadata.generation ?? 0);
  }

  #status(): DeploymentStatus {
    const { metadata: { generation }, status } = this.#deployment;
    const available = sum(this.#all, (set) => set.status?.availableReplicas);
    const counts = {
      replicas: sum(this.#all, (set) => set.status?.replicas),
      updatedReplicas: this.#current?.status?.replicas ?? 0,
      readyReplicas: sum(this.#all, (set) => set.status?.readyReplicas),
      availableReplicas: available,
      unavailableReplicas: Math.max(0, sum(this.#all, replicasOf) - available),
    };
    const isAvailable = available >= this.#replicas - this.#unavailable;
    return {
      observedGeneration: generation,
      ...Object.fromEntries(Object.entries(counts).filter(([, n]) => n > 0)),
      ...this.#terminating(),
      ...(status?.collisionCount !== undefined &&
        { collisionCount: status.collisionCount }),
      conditions: withCondition(
        status?.conditions,
        this.#newCondition(
          isAvailable
            ? "MinimumReplicasAvailable"
            : "MinimumReplicasUnavailable",
        ),
      ),
    };
  }

  /** Number of terminating pods, unless a ReplicaSet that was synced has none. */
  #terminating(): Pick<DeploymentStatus, "terminatingReplicas"> {
    const synced = this.#all.flatMap((set) =>
      set?.status?.observedGeneration ? [set] : []
    );
    const countOf = (set: ReplicaSet) => set.status?.terminatingReplicas;
    return synced.every((set) => countOf(set) !== undefined)
      ? { terminatingReplicas: sum(synced, countOf) }
      : {};
  }

  /** Writes the status of a rollout; returns the delay until its deadline is due. */
  async #report(): Promise<number | undefined> {
    const status = this.#status();
    const deadline = this.#deadline;
    const { conditions } = status;
    const before = this.#condition("Progressing");
    const wasComplete = status.replicas === status.updatedReplicas &&
      before?.reason === "NewReplicaSetAvailable";
    if (deadline === undefined) {
      status.conditions = withoutCondition(conditions, "Progressing");
    } else if (!wasComplete) {
      status.conditions = this.#progress(status, before, deadline);
    }
    const failure = [this.#current, ...this.#old].flatMap((set) =>
      set?.status?.conditions ?? []
    ).find(({ type }) => type === "ReplicaFailure");
    const others = status.conditions ?? [];
    status.conditions = failure
      ? withCondition(others, { lastUpdateTime: this.#api.time, ...failure })
      : withoutCondition(others, "ReplicaFailure");
    await this.#writeStatus(status);
    const progress = this.#condition("Progressing");
    if (
      deadline === undefined || progress === undefined ||
      this.#isComplete(status) ||
      progress.reason === "ProgressDeadlineExceeded"
    ) return undefined;
    const end = Date.parse(progress.lastUpdateTime ?? "") + deadline * 1000;
    return Math.max(end - this.#api.now, 0) + 1000;
  }

  #progress(
    status: DeploymentStatus,
    before: DeploymentCondition | undefined,
    deadline: number,
  ): DeploymentCondition[] {
    const { conditions = [] } = status;
    const subject = this.#current
      ? `ReplicaSet "${this.#current.metadata.name}"`
      : `Deployment "${this.#deployment.metadata.name}"`;
    if (this.#isComplete(status)) {
      return withCondition(
        conditions,
        this.#newCondition("NewReplicaSetAvailable", subject),
      );
    }
    if (hasProgressed(this.#deployment.status ?? {}, status)) {
      const condition = this.#newCondition("ReplicaSetUpdated", subject);
      return [
        ...withoutCondition(conditions, "Progressing"),
        before?.status === "True"
          ? { ...condition, lastTransitionTime: before.lastTransitionTime }
          : condition,
      ];
    }
    const last = Date.parse(before?.lastUpdateTime ?? "");
    const isLate = before !== undefined &&
      before.reason !== "NewReplicaSetAvailable" &&
      last + deadline * 1000 < this.#api.now;
    return isLate
      ? withCondition(
        conditions,
        this.#newCondition("ProgressDeadlineExceeded", subject),
      )
      : conditions;
  }
}

/** Whether a status has more new pods or fewer old pods than the previous status. */
function hasProgressed(
  before: DeploymentStatus,
  after: DeploymentStatus,
): boolean {
  const old = ({ replicas = 0, updatedReplicas = 0 }: DeploymentStatus) =>
    replicas - updatedReplicas;
  const grows = (
    name: "updatedReplicas" | "readyReplicas" | "availableReplicas",
  ) => (after[name] ?? 0) > (before[name] ?? 0);
  return old(after) < old(before) || grows("updatedReplicas") ||
    grows("readyReplicas") || grows("availableReplicas");
}
