import {
  Job,
  type JobCondition,
  type JobStatus,
  Pod,
} from "@coracle/operator/kinds";
import {
  type ControllerApi,
  controllerOf,
  type Draft,
} from "../controller_api.ts";
import type { ControllerDefinition } from "../controller_loop.ts";
import { withCondition } from "../conditions.ts";
import {
  deletionOrder,
  isActive,
  isFinished,
  isReady,
  podFrom,
} from "./pods.ts";

const TRACKING = "batch.kubernetes.io/job-tracking";
const INDEX = "batch.kubernetes.io/job-completion-index";
const INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count";
/** First and longest delay before a failed pod is replaced, in milliseconds. */
const BACKOFF_MS = { first: 10_000, longest: 600_000 };
/** Maximum number of pods that one sync creates. */
const BURST = 500;

/** Controller of Jobs. */
export const JOBS: ControllerDefinition = {
  name: "job-controller",
  kind: Job,
  owns: [Pod],
  async sync(object, api) {
    const job = object as Job;
    const { managedBy } = job.spec ?? {};
    if (managedBy && managedBy !== "kubernetes.io/job-controller") {
      return undefined;
    }
    return job.spec && await new JobSync(job, job.spec, api).run();
  },
};

/** Controller that removes the finalizer of pods whose Job is gone. */
export const JOB_ORPHANS: ControllerDefinition = {
  name: "job-controller",
  kind: Pod,
  concerns: ({ labels }) =>
    labels?.["batch.kubernetes.io/job-name"] !== undefined,
  async sync(object, api) {
    const pod = object as Pod;
    if (!isTracked(pod)) return;
    const { namespace, ownerReferences } = pod.metadata;
    const owner = controllerOf(ownerReferences);
    const job = owner?.kind === "Job" &&
      api.get(Job, { namespace, name: owner.name });
    if (!job || job.metadata.uid !== owner.uid) await untrack(pod, api);
  },
};

/** Controller that deletes finished Jobs when their time to live is over. */
export const EXPIRED_JOBS: ControllerDefinition = {
  name: "ttl-after-finished-controller",
  kind: Job,
  async sync(object, api) {
    const job = object as Job;
    const { ttlSecondsAfterFinished: ttl } = job.spec ?? {};
    const finished = finishOf(job);
    if (ttl === undefined || finished === undefined) return undefined;
    if (job.metadata.deletionTimestamp) return undefined;
    const end = Date.parse(finished.lastTransitionTime ?? "") + ttl * 1000;
    if (end > api.now) return end - api.now;
    await api.delete(Job, job, { propagationPolicy: "Foreground" });
    return undefined;
  },
};

/** Condition of a finished Job; undefined while it runs. */
export function finishOf({ status }: Job): JobCondition | undefined {
  return status?.conditions?.find(({ type, status }) =>
    status === "True" && (type === "Complete" || type === "Failed")
  );
}

function isTracked({ metadata }: Pod): boolean {
  return metadata.finalizers?.includes(TRACKING) ?? false;
}

async function untrack(pod: Pod, api: ControllerApi): Promise<void> {
  await api.removeFinalizer(Pod, pod, TRACKING);
}

function indexOf({ metadata: { annotations = {} } }: Pod): number {
  const { [INDEX]: index } = annotations;
  return /^\d+$/.test(index ?? "") ? Number(index) : -1;
}

function failuresOfIndex({ metadata: { annotations = {} } }: Pod): number {
  return Number(annotations[INDEX_FAILURES]) || 0;
}

/** Time at which a pod ended, in milliseconds. */
function endOf({ status, metadata }: Pod): number {
  const times =
    status?.containerStatuses?.map(({ state }) =>
      Date.parse(state?.terminated?.finishedAt ?? "") || 0
    ) ?? [];
  return Math.max(0, ...times) ||
    Date.parse(metadata.deletionTimestamp ?? metadata.creationTimestamp ?? "");
}

/** Reason for which a Job ends. */
interface End {
  readonly type: "FailureTarget" | "SuccessCriteriaMet";
  readonly reason: string;
  readonly message: string;
}

/**
 * UIDs of pods that a server has counted and whose finalizer it could not remove
 * yet, for example because admission denied it. Kubernetes keeps them in
 * `status.uncountedTerminatedPods`.
 */
const COUNTED: WeakMap<ControllerApi, Set<string>> = new WeakMap();

/** One sync of a Job. */
class JobSync {
  readonly #job: Job;
  readonly #spec: NonNullable<Job["spec"]>;
  readonly #api: ControllerApi;
  readonly #status: JobStatus;
  readonly #isIndexed: boolean;
  readonly #done: Set<number>;
  readonly #failedIndexes: Set<number>;
  /** UIDs of the pods that this sync has counted. */
  readonly #counted: Set<string | undefined> = new Set();
  /** UIDs of the pods that earlier syncs have counted. */
  readonly #known: Set<string>;
  #pods: Pod[] = [];
  #delay: number | undefined;

  constructor(job: Job, spec: NonNullable<Job["spec"]>, api: ControllerApi) {
    this.#job = job;
    this.#spec = spec;
    this.#api = api;
    this.#known = COUNTED.get(api) ?? new Set();
    COUNTED.set(api, this.#known);
    this.#status = structuredClone(job.status ?? {});
    this.#isIndexed = spec.completionMode === "Indexed";
    this.#done = parseIndexes(job.status?.completedIndexes);
    this.#failedIndexes = parseIndexes(job.status?.failedIndexes);
  }

  get #parallelism(): number {
    return this.#spec.parallelism ?? 1;
  }

  #active(): Pod[] {
    return this.#pods.filter(isActive);
  }

  #terminating(): Pod[] {
    return this.#pods.filter((pod) =>
      pod.metadata.deletionTimestamp !== undefined && !isFinished(pod)
    );
  }

  async #claim(): Promise<void> {
    this.#pods = await this.#api.claim(
      Pod,
      Job,
      this.#job,
      this.#spec.selector,
    );
  }

  async run(): Promise<number | undefined> {
    await this.#claim();
    if (finishOf(this.#job) || this.#job.metadata.deletionTimestamp) {
      for (const pod of this.#pods) {
        if (isTracked(pod)) await this.#untrack(pod);
      }
      return;
    }
    if (!this.#spec.suspend) this.#status.startTime ??= this.#api.time;
    const counted = this.#count();
    const end = this.#end();
    let failure: unknown;
    try {
      if (end) {
        for (const pod of this.#active()) await this.#api.delete(Pod, pod);
      } else if (this.#spec.suspend) await this.#suspend();
      else await this.#manage();
    } catch (error) {
      failure = error;
    }
    await this.#claim();
    // Pods that were deleted above count as failed before the Job ends.
    if (end) counted.push(...this.#count(true));
    this.#settle(end ?? this.#completion());
    await this.#api.setStatus(Job, this.#job, this.#status);
    for (const { metadata: { uid = "" } } of counted) this.#known.add(uid);
    for (const pod of counted) await this.#untrack(pod);
    if (failure !== undefined) throw failure;
    return this.#delay;
  }

  async #untrack(pod: Pod): Promise<void> {
    await untrack(pod, this.#api);
    this.#known.delete(pod.metadata.uid ?? "");
  }

  /** Counts the pods that have ended; returns them. */
  #count(isEnding = false): Pod[] {
    const { podReplacementPolicy, podFailurePolicy, completions = 1 } =
      this.#spec;
    const onlyFailed = podReplacementPolicy === "Failed" ||
      (podReplacementPolicy === undefined && podFailurePolicy !== undefined);
    const counted: Pod[] = [];
    for (const pod of this.#pods) {
      if (!isTracked(pod) || this.#counted.has(pod.metadata.uid)) continue;
      const phase = pod.status?.phase;
      const isTerminating = pod.metadata.deletionTimestamp !== undefined;
      const hasFailed = phase === "Failed" ||
        (phase !== "Succeeded" && isTerminating && (!onlyFailed || isEnding));
      if (phase !== "Succeeded" && !hasFailed) continue;
      const index = indexOf(pod);
      counted.push(pod);
      this.#counted.add(pod.metadata.uid);
      if (this.#known.has(pod.metadata.uid ?? "")) continue;
      if (this.#isIndexed && (index < 0 || index >= completions)) continue;
      if (phase === "Succeeded") {
        if (this.#isIndexed) this.#done.add(index);
        else this.#status.succeeded = (this.#status.succeeded ?? 0) + 1;
        continue;
      }
      const action = failureAction(pod, podFailurePolicy);
      if (action?.action === "Ignore") continue;
      this.#status.failed = (this.#status.failed ?? 0) + 1;
      const { backoffLimitPerIndex: limit } = this.#spec;
      const isLost = limit !== undefined && failuresOfIndex(pod) >= limit;
      if (this.#isIndexed && (isLost || action?.action === "FailIndex")) {
        this.#failedIndexes.add(index);
      }
    }
    if (this.#isIndexed) {
      for (const index of this.#done) this.#failedIndexes.delete(index);
      if (this.#done.size > 0) this.#status.succeeded = this.#done.size;
    }
    // The counted pods need no further handling.
    const gone = new Set(counted);
    this.#pods = this.#pods.filter((pod) => !gone.has(pod) || isFinished(pod));
    return counted;
  }

  /** Reason why the Job must end; undefined if it continues. */
  #end(): End | undefined {
    for (
      const { type, status, reason = "", message = "" }
        of this.#status.conditions ?? []
    ) {
      const ends = type === "FailureTarget" || type === "SuccessCriteriaMet";
      if (ends && status === "True") return { type, reason, message };
    }
    const fail = (reason: string, message: string): End => ({
      type: "FailureTarget",
      reason,
      message,
    });
    const { podFailurePolicy, backoffLimit = 6, successPolicy } = this.#spec;
    for (const pod of this.#pods) {
      const action = failureAction(pod, podFailurePolicy);
      if (action?.action === "FailJob") {
        return fail("PodFailurePolicy", action.message);
      }
    }
    if (successPolicy && this.#meets(successPolicy)) {
      return {
        type: "SuccessCriteriaMet",
        reason: "SuccessPolicy",
        message: "Matched rules at index 0",
      };
    }
    const restarts = this.#spec.template.spec.restartPolicy === "OnFailure"
      ? this.#pods.filter((pod) => !isFinished(pod)).reduce(
        (sum, { status }) =>
          (status?.containerStatuses ?? []).reduce(
            (sum, { restartCount = 0 }) => sum + restartCount,
            sum,
          ),
        0,
      )
      : 0;
    if (
      (this.#status.failed ?? 0) > backoffLimit ||
      (restarts > 0 && restarts >= backoffLimit)
    ) {
      return fail(
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
      );
    }
    const { activeDeadlineSeconds: deadline } = this.#spec;
    if (deadline !== undefined && !this.#spec.suspend) {
      const end = Date.parse(this.#status.startTime ?? this.#api.time) +
        Number(deadline) * 1000;
      if (end <= this.#api.now) {
        return fail(
          "DeadlineExceeded",
          "Job was active longer than specified deadline",
        );
      }
      this.#wait(end - this.#api.now);
    }
    const { maxFailedIndexes, completions = 1 } = this.#spec;
    const { size } = this.#failedIndexes;
    if (maxFailedIndexes !== undefined && size > maxFailedIndexes) {
      return fail(
        "MaxFailedIndexesExceeded",
        "Job has exceeded the specified maximal number of failed indexes",
      );
    }
    return size > 0 && size + this.#done.size >= completions
      ? fail("FailedIndexes", "Job has failed indexes")
      : undefined;
  }

  #wait(delay: number): void {
    this.#delay = Math.min(this.#delay ?? Infinity, delay);
  }

  #meets({ rules = [] }: NonNullable<Job["spec"]>["successPolicy"] & object) {
    return rules.some(({ succeededCount, succeededIndexes }) => {
      const wanted = succeededIndexes === undefined
        ? undefined
        : parseIndexes(succeededIndexes);
      const met = [...this.#done].filter((index) =>
        wanted?.has(index) ?? true
      ).length;
      return met >= (succeededCount ?? wanted?.size ?? Infinity);
    });
  }

  #completion(): End | undefined {
    const { completions } = this.#spec;
    const { succeeded = 0 } = this.#status;
    const isComplete = completions === undefined
      ? succeeded > 0 && this.#active().length === 0
      : succeeded >= completions && !this.#spec.suspend;
    return isComplete
      ? {
        type: "SuccessCriteriaMet",
        reason: "CompletionsReached",
        message: "Reached expected number of succeeded pods",
      }
      : undefined;
  }

  async #suspend(): Promise<void> {
    await this.#remove(this.#active());
    this.#setCondition("Suspended", "True", "JobSuspended", "Job suspended");
  }

  /** Deletes pods without counting them. */
  async #remove(pods: readonly Pod[]): Promise<void> {
    for (const pod of pods) {
      await untrack(pod, this.#api);
      await this.#api.delete(Pod, pod);
    }
  }

  #setCondition(
    type: string,
    status: string,
    reason: string,
    message: string,
  ): void {
    const { time } = this.#api;
    const { conditions = [] } = this.#status;
    if (conditions.some((one) => one.type === type && one.status === status)) {
      return;
    }
    this.#status.conditions = withCondition<JobCondition>(conditions, {
      type,
      status,
      lastProbeTime: time,
      lastTransitionTime: time,
      reason,
      message,
    });
  }

  /** Creates or deletes pods to reach the desired parallelism. */
  async #manage(): Promise<void> {
    const wasSuspended = this.#status.conditions?.some(({ type, status }) =>
      type === "Suspended" && status === "True"
    );
    if (wasSuspended) {
      this.#setCondition("Suspended", "False", "JobResumed", "Job resumed");
      this.#status.startTime = this.#api.time;
    }
    const { completions } = this.#spec;
    const active = this.#active();
    const { succeeded = 0 } = this.#status;
    const left = completions === undefined
      ? succeeded > 0 ? active.length : this.#parallelism
      : Math.max(completions - succeeded - this.#failedIndexes.size, 0);
    const wanted = Math.min(left, this.#parallelism);
    if (active.length > wanted) {
      const surplus = active.length - wanted;
      await this.#remove(deletionOrder(active).slice(0, surplus));
      return;
    }
    const { podReplacementPolicy, podFailurePolicy } = this.#spec;
    const waits = podReplacementPolicy === "Failed" ||
      (podReplacementPolicy === undefined && podFailurePolicy !== undefined);
    const used = [...active, ...waits ? this.#terminating() : []];
    const missing = Math.min(wanted - used.length, BURST);
    if (missing <= 0) return;
    const delay = this.#backoff();
    if (delay > 0) return this.#wait(delay);
    if (!this.#isIndexed) {
      for (let count = 0; count < missing; count++) {
        await this.#api.create(Pod, this.#podOf(undefined));
      }
      return;
    }
    const taken = new Set(used.map(indexOf));
    let created = 0;
    for (let index = 0; index < (completions ?? 0); index++) {
      if (created >= missing) return;
      if (
        taken.has(index) || this.#done.has(index) ||
        this.#failedIndexes.has(index)
      ) continue;
      await this.#api.create(Pod, this.#podOf(index));
      created++;
    }
  }

  /** Milliseconds until failed pods may be replaced. */
  #backoff(): number {
    const ended = this.#pods.filter(isFinished).sort((a, b) =>
      endOf(b) - endOf(a)
    );
    const success = ended.findIndex(({ status }) =>
      status?.phase === "Succeeded"
    );
    const failures = success < 0 ? ended.length : success;
    const [last] = ended;
    if (failures === 0 || last === undefined) return 0;
    return endOf(last) + Math.min(
      BACKOFF_MS.first * 2 ** (failures - 1),
      BACKOFF_MS.longest,
    ) - this.#api.now;
  }

  #podOf(index: number | undefined): Draft<Pod> {
    const draft = podFrom(this.#spec.template, Job, this.#job);
    const { metadata, spec } = draft;
    metadata.finalizers = [...metadata.finalizers ?? [], TRACKING];
    if (index === undefined) return draft;
    const { name } = this.#job.metadata;
    metadata.generateName = `${name}-${index}-`;
    metadata.labels = { ...metadata.labels, [INDEX]: String(index) };
    metadata.annotations = { ...metadata.annotations, [INDEX]: String(index) };
    if (this.#spec.backoffLimitPerIndex !== undefined) {
      const failures = this.#pods.filter((pod) =>
        indexOf(pod) === index && pod.status?.phase === "Failed" &&
        failureAction(pod, this.#spec.podFailurePolicy)?.action !== "Ignore"
      ).length;
      metadata.annotations[INDEX_FAILURES] = String(failures);
    }
    spec.hostname = `${name}-${index}`;
    const fieldPath = `metadata.labels['${INDEX}']`;
    for (
      const container of [
        ...spec.containers ?? [],
        ...spec.initContainers ?? [],
      ]
    ) {
      const env = container.env ??= [];
      if (env.some(({ name }) => name === "JOB_COMPLETION_INDEX")) continue;
      env.push({
        name: "JOB_COMPLETION_INDEX",
        valueFrom: { fieldRef: { fieldPath } },
      });
    }
    return draft;
  }

  /** Sets the counts and, once no pod is left, the final condition. */
  #settle(end: End | undefined): void {
    const active = this.#active();
    const terminating = this.#terminating().length;
    const status = this.#status;
    if (active.length > 0) status.active = active.length;
    else delete status.active;
    status.ready = active.filter(isReady).length;
    status.terminating = terminating;
    status.uncountedTerminatedPods = {};
    if (this.#isIndexed) {
      setOrDelete(status, "completedIndexes", formatIndexes(this.#done));
      if (this.#spec.backoffLimitPerIndex !== undefined) {
        status.failedIndexes = formatIndexes(this.#failedIndexes);
      }
    }
    if (end === undefined) return;
    const { type, reason, message } = end;
    this.#setCondition(type, "True", reason, message);
    if (active.length > 0 || terminating > 0) return;
    const isSuccess = type === "SuccessCriteriaMet";
    this.#setCondition(
      isSuccess ? "Complete" : "Failed",
      "True",
      reason,
      message,
    );
    if (isSuccess) status.completionTime = this.#api.time;
  }
}

function setOrDelete(
  status: JobStatus,
  name: "completedIndexes",
  text: string,
): void {
  if (text === "") delete status[name];
  else status[name] = text;
}

/** Indexes of a text such as `1,3-5`. */
function parseIndexes(text: string | undefined): Set<number> {
  const indexes = new Set<number>();
  for (const range of text?.split(",") ?? []) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(range.trim());
    if (match === null) continue;
    const [, first, last = first] = match;
    // Jobs have at most 100,000 indexes.
    const end = Math.min(Number(last), 100_000);
    for (let index = Number(first); index <= end; index++) indexes.add(index);
  }
  return indexes;
}

/** Text of indexes; three or more in a row become a range such as `3-5`. */
function formatIndexes(indexes: ReadonlySet<number>): string {
  const parts: string[] = [];
  const sorted = [...indexes].sort((a, b) => a - b);
  for (let at = 0; at < sorted.length;) {
    const first = sorted[at] as number;
    let last = first;
    while (sorted[++at] === last + 1) last++;
    if (last === first) parts.push(String(first));
    else {parts.push(
        last === first + 1 ? `${first},${last}` : `${first}-${last}`,
      );}
  }
  return parts.join(",");
}

type Policy = NonNullable<NonNullable<Job["spec"]>["podFailurePolicy"]>;

/** Action of a Job's failure policy for a failed pod; undefined if no rule matches. */
function failureAction(
  pod: Pod,
  policy: Policy | undefined,
): { readonly action: string; readonly message: string } | undefined {
  if (pod.status?.phase !== "Failed") return undefined;
  const { namespace, name } = pod.metadata;
  for (const [index, rule] of policy?.rules?.entries() ?? []) {
    const { action, onExitCodes, onPodConditions = [] } = rule;
    const matching = `matching ${action} rule at index ${index}`;
    if (onExitCodes) {
      const { containerName, operator, values = [] } = onExitCodes;
      const failed = [
        ...pod.status.initContainerStatuses ?? [],
        ...pod.status.containerStatuses ?? [],
      ].find(({ name, state }) => {
        const code = state?.terminated?.exitCode ?? 0;
        return code !== 0 && (!containerName || containerName === name) &&
          values.includes(code) === (operator === "In");
      });
      if (failed) {
        const { exitCode } = failed.state?.terminated ?? {};
        const message =
          `Container ${failed.name} for pod ${namespace}/${name} failed with exit code ${exitCode} ${matching}`;
        return { action, message };
      }
      continue;
    }
    const condition = onPodConditions.find(({ type, status = "True" }) =>
      pod.status?.conditions?.some((one) =>
        one.type === type && one.status === status
      )
    );
    if (condition) {
      const message =
        `Pod ${namespace}/${name} has condition ${condition.type} ${matching}`;
      return { action, message };
    }
  }
  return undefined;
}
