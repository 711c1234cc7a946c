import type { KubernetesObject } from "@coracle/operator/client";
import type { ConfigMap } from "@coracle/operator/kinds";
import type { RequestEntry } from "../../../dev/testing/check/trace.ts";
import type { World } from "../../../dev/testing/check/world.ts";
import type { WorldObjects } from "../../../dev/testing/check/world_objects.ts";
import { metricReader } from "../../soak/soaked_operator.ts";
import {
  childName,
  type ChildSource,
  finalizerOf,
  type Fleet,
  type Primary,
  type Registry,
} from "./fleet.ts";
import {
  type ControllerPlan,
  KINDS,
  NAMESPACES,
  type SeedPlan,
} from "./seed_plan.ts";
import {
  API_VERSION,
  hasPerturbation,
  isChosen,
  primariesIn,
  sorted,
  versionsOf,
} from "./seed_objects.ts";

/** Time in which an idle operator must send nothing. */
const IDLE_MS = 2 * 60_000;
/** Timers that an operator may have more than before there was an object. */
const MORE_TIMERS = 2;
/** Time in which a stopped operator must send nothing. */
const STOPPED_MS = 60_000;

/** What is judged: the run of a plan. */
export interface SeedState {
  readonly plan: SeedPlan;
  readonly world: World;
  /** Controllers with the namespaces that they have now. */
  readonly controllers: readonly ControllerPlan[];
  readonly fleets: readonly Fleet[];
  /** Fleets of the incarnations that are not dead. */
  readonly live: readonly Fleet[];
  readonly registry: Registry;
  /** What the user has written last, by kind, namespace and name. */
  readonly asked: ReadonlyMap<
    string,
    { readonly value: string; readonly marked: boolean }
  >;
  /** Notes what did not hold. */
  fail(invariant: string, detail: string): void;
  /** Nobody but the user removes the finalizer of the user. */
  judgeGuard(primary: Primary): void;
}

/** Judges a run of a plan while nothing changes. */
export class StateJudge {
  readonly #state: SeedState;

  constructor(state: SeedState) {
    this.#state = state;
  }

  /** The last state of each object is reconciled, and nothing else is left. */
  judgeState(): void {
    const objects = this.#state.world.snapshot();
    const wasEdited = this.#state.plan.perturbations.some((one) =>
      one.do === "edit"
    );
    for (const primary of primariesIn(objects)) {
      const { namespace = "", name, annotations } = primary.metadata;
      this.#state.judgeGuard(primary);
      const id = `${primary.kind} ${namespace}/${name}`;
      if (primary.metadata.deletionTimestamp !== undefined) {
        this.#state.fail("no finalizer is stuck", id);
        continue;
      }
      const asked = this.#state.asked.get(id);
      if (asked === undefined) {
        this.#state.fail("no acknowledged write is lost", `${id} was deleted`);
      } else if (!wasEdited) {
        if (asked.value !== primary.spec.value) {
          this.#state.fail(
            "no acknowledged write is lost",
            `${id} has ${primary.spec.value}, and ${asked.value} was written`,
          );
        }
        if (asked.marked && annotations?.["marked"] !== "yes") {
          this.#state.fail("no acknowledged write is lost", `${id}: the mark`);
        }
      }
      for (const plan of this.#state.controllers) {
        if (isChosen(plan, primary)) this.#judgePrimary(plan, primary, objects);
      }
    }
    for (const [key, { metadata }] of Object.entries(objects)) {
      for (const { uid, kind, name } of metadata?.ownerReferences ?? []) {
        const owner = objects[
          `${API_VERSION} ${kind} ${metadata?.namespace}/${name}`
        ];
        if (owner?.metadata?.uid !== uid) {
          this.#state.fail("nothing is orphaned", key);
        }
      }
    }
    this.#judgeRegistry(objects);
  }

  #judgePrimary(
    plan: ControllerPlan,
    { metadata, kind, spec, status }: Primary,
    objects: WorldObjects,
  ): void {
    const { namespace, name, uid, generation } = metadata;
    const id = `${plan.name}, ${kind} ${namespace}/${name}`;
    const settings = objects[`v1 ConfigMap ${namespace}/settings`] as
      | ConfigMap
      | undefined;
    const value = `${spec.value}/${
      plan.reads ? settings?.data?.["value"] ?? "" : ""
    }`;
    if (plan.status !== "none" && status?.[plan.name] !== value) {
      this.#state.fail(
        "the last state is reconciled",
        `${id}: status ${status?.[plan.name]}, not ${value}`,
      );
    }
    if (plan.stamps && spec.stamp !== spec.value) {
      this.#state.fail(
        "the last state is reconciled",
        `${id}: stamp ${spec.stamp}, not ${spec.value}`,
      );
    }
    const observed = status?.["observedGeneration"];
    // The field is one for all controllers: the last run of one that has left the
    // namespace may have written it after those that stay.
    const isShared = this.#state.plan.steps.some((step) =>
      step.do === "watch" && step.controller !== plan.name
    );
    if (kind === KINDS[0] && observed !== generation && !isShared) {
      this.#state.fail(
        "the last state is reconciled",
        `${id}: observedGeneration ${observed}, not ${generation}`,
      );
    }
    for (let index = 0; index < 2; index++) {
      const child = childName(name, plan.name, index);
      const stored = objects[`v1 ConfigMap ${namespace}/${child}`] as
        | ConfigMap
        | undefined;
      const expected = index < spec.size ? value : undefined;
      if (stored?.data?.["value"] !== expected) {
        this.#state.fail(
          "the last state is reconciled",
          `${child}: ${stored?.data?.["value"]}, not ${expected}`,
        );
      }
      const owners = stored?.metadata.ownerReferences ?? [];
      if (stored && !owners.some((owner) => owner.uid === uid)) {
        this.#state.fail(
          "the last state is reconciled",
          `${child} has no owner`,
        );
      }
    }
  }

  /** What cleanup removes is there as long as the object, and no longer. */
  #judgeRegistry(objects: WorldObjects): void {
    const primaries = primariesIn(objects);
    const { entries } = this.#state.registry;
    for (const plan of this.#state.controllers) {
      if (!plan.cleanup && !plan.allEvents) continue;
      const wanted = new Set<string>();
      for (const primary of primaries) {
        if (!isChosen(plan, primary)) continue;
        const id = `${plan.name} ${primary.metadata.uid}`;
        wanted.add(id);
        const has = primary.metadata.finalizers?.includes(
          finalizerOf(plan.name),
        );
        if (plan.cleanup && !has) {
          this.#state.fail("cleanup is called once", `${id} has no finalizer`);
        }
        if (!entries.has(id)) {
          this.#state.fail(
            "cleanup is called once",
            `${id} exists, but was cleaned up`,
          );
        }
      }
      // All-events mode misses deletions while the operator is down or does not
      // watch, and a member of a shard group that loses its Lease forgets those
      // that wait for a run; an old state and an object that leaves the selection
      // are not cleaned up either.
      const { coordination, network } = this.#state.plan;
      const mayLoseShard = coordination === "sharding" &&
        (hasPerturbation(this.#state.plan, "leader") ||
          network.cutAt !== undefined);
      const wasChanged = this.#state.plan.steps.some((step) =>
        step.do === "watch" && step.controller === plan.name
      );
      const isExact = !hasPerturbation(this.#state.plan, "stale") &&
        !plan.selects &&
        (plan.cleanup ||
          this.#state.fleets.length === 1 && !wasChanged && !mayLoseShard);
      for (const id of entries) {
        if (!id.startsWith(`${plan.name} `) || wanted.has(id)) continue;
        if (isExact) {
          this.#state.fail(
            "cleanup is called once",
            `${id} is gone, not cleaned up`,
          );
        }
      }
    }
  }

  /** Caches and observers have what the server has. */
  async judgeCaches(): Promise<void> {
    const world = this.#state.world;
    const objects = world.snapshot();
    for (const fleet of this.#state.live) {
      for (const [kind, observer] of fleet.observers) {
        observer.judge(versionsOf(kind, observer.informer.namespaces, objects));
      }
      for (const plan of this.#state.controllers) {
        const handle = fleet.handles.get(plan.name);
        const expected = primariesIn(objects).filter((one) =>
          isChosen(plan, one)
        );
        const cached = handle?.primaries.list() ?? [];
        this.#compare(`${plan.name} of ${fleet.incarnation}`, cached, expected);
        const source = fleet.sources.get(plan.name) as ChildSource;
        for (const namespace of NAMESPACES) {
          if (
            plan.namespaces !== "all" && !plan.namespaces.includes(namespace)
          ) {
            continue;
          }
          const maps = await source.list?.(namespace) ?? [];
          const stored = Object.entries(objects).flatMap(([key, object]) =>
            key.startsWith(`v1 ConfigMap ${namespace}/`) ? [object] : []
          );
          this.#compare(
            `ConfigMaps of ${plan.name} of ${fleet.incarnation}`,
            maps,
            stored,
          );
        }
        for (const primary of expected) {
          const owned = Object.values(objects).filter((object) =>
            object.metadata?.ownerReferences?.some(({ uid }) =>
              uid === primary.metadata.uid
            )
          );
          this.#compare(
            `Children of ${primary.metadata.name} in ${plan.name} of ${fleet.incarnation}`,
            await source.secondaries?.(primary) ?? [],
            owned,
          );
        }
      }
    }
  }

  #compare(
    cache: string,
    cached: readonly KubernetesObject[],
    stored: readonly KubernetesObject[],
  ): void {
    const lines = (objects: readonly KubernetesObject[]) =>
      objects.map(({ metadata, ...fields }) => {
        const { apiVersion: _, kind: __, ...others } = fields as Record<
          string,
          unknown
        >;
        return `${metadata?.namespace}/${metadata?.name} ${metadata?.uid} ${metadata?.resourceVersion} ${
          sorted(others)
        }`;
      }).sort();
    const [a, b] = [lines(cached), lines(stored)];
    const extra = a.filter((line) => !b.includes(line));
    const missing = b.filter((line) => !a.includes(line));
    if (a.length === b.length && extra.length + missing.length === 0) return;
    this.#state.fail(
      "caches equal the server",
      `${cache}: it has ${extra}, the server has ${missing}`,
    );
  }

  /** Metrics and health have what the fleets have counted. */
  judgeMetrics(): void {
    const { coordination } = this.#state.plan;
    for (const fleet of this.#state.live) {
      const health = fleet.operator.health();
      const read = metricReader(fleet.operator.metrics());
      for (const plan of this.#state.controllers) {
        const controller = plan.name;
        const { calls, throws } = fleet.tallies.get(controller)!;
        const value = (name: string) => read(name, { controller });
        const ended = (result: string) =>
          read("coracle_reconciliations_total", { controller, result });
        const failed = ended("failure") + ended("aborted");
        const runs = ended("success") + failed;
        const one = health.controllers.find(({ name }) => name === controller);
        const equal = (what: string, a: unknown, b: unknown) => {
          if (a === b) return;
          this.#state.fail(
            "metrics equal what was counted",
            `${controller} of ${fleet.incarnation}: ${what}: ${a}, not ${b}`,
          );
        };
        equal("active", value("coracle_reconciliations_active"), 0);
        // What a standby replica would do first waits in its queue.
        if (one?.active) equal("queue", value("coracle_queue_depth"), 0);
        equal("failing", value("coracle_failing_objects"), 0);
        equal("causes", value("coracle_reconciliation_causes_total"), runs);
        equal(
          "durations",
          value("coracle_reconciliation_duration_seconds_count"),
          runs,
        );
        equal("failing", one?.failing, 0);
        if (runs < calls || failed < throws) {
          equal(
            "runs and failed runs",
            `${runs} ${failed}`,
            `${calls} ${throws}`,
          );
        }
        if (coordination !== "sharding") {
          equal(
            "primaries",
            value("coracle_primaries"),
            fleet.handles.get(controller)?.primaries.list().length,
          );
        }
      }
    }
  }

  /** Nothing is sent and nothing runs while nothing changes. */
  async judgeIdle(): Promise<void> {
    const world = this.#state.world;
    const hasInterval = this.#state.controllers.some(({ interval }) =>
      interval
    );
    const { length } = world.trace;
    const calls = () =>
      this.#state.fleets.reduce(
        (sum, { tallies }) =>
          [...tallies.values()].reduce((all, one) => all + one.calls, sum),
        0,
      );
    const before = calls();
    await world.advance(IDLE_MS);
    const requests = world.trace.slice(length).filter((entry) =>
      entry.type === "request" && entry.verb !== "watch" &&
      entry.resource !== "leases" && (entry.write !== undefined || !hasInterval)
    ) as RequestEntry[];
    const isIdle = requests.length === 0;
    if (!isIdle) {
      this.#state.fail(
        "no request when idle",
        requests.slice(0, 5).map(({ verb, path }) => `${verb} ${path}`).join(),
      );
    }
    if (!hasInterval && calls() !== before) {
      this.#state.fail("no request when idle", `${calls() - before} runs`);
    }
  }

  /** Nothing is left after the last object. */
  async judgeEmpty(): Promise<void> {
    const world = this.#state.world;
    const objects = world.snapshot();
    for (const { kind, metadata } of primariesIn(objects)) {
      this.#state.fail("no finalizer is stuck", `${kind} ${metadata.name}`);
    }
    for (const [key, { metadata }] of Object.entries(objects)) {
      if (metadata?.ownerReferences?.length) {
        this.#state.fail("nothing is orphaned", key);
      }
    }
    this.#judgeRegistry(objects);
    await this.judgeCaches();
    for (const fleet of this.#state.live) {
      const { controllers } = fleet.operator.health();
      for (const { name, active, delayed, waiting, primaries } of controllers) {
        // A standby replica keeps deletions that it has to work on once it leads,
        // with the times at which their objects would have run next.
        const kept = active ? 0 : waiting;
        if (delayed > kept || primaries > 0) {
          this.#state.fail(
            "no growth",
            `${name} of ${fleet.incarnation} has ${primaries} primaries, ${delayed} delayed and ${waiting} waiting keys`,
          );
        }
      }
    }
  }

  /** A stopped operator has no timer, and sends nothing. */
  async judgeStop(): Promise<void> {
    const world = this.#state.world;
    for (const fleet of this.#state.live) {
      for (const { informer } of fleet.observers.values()) {
        await world.complete(informer.close());
      }
      if (fleet.scribe) await world.complete(fleet.scribe.informer.close());
      await world.complete(fleet.operator.stop());
      const { pending } = fleet.timers;
      if (pending > MORE_TIMERS) {
        this.#state.fail("no growth", `${pending} timers after the end`);
      }
    }
    const { length } = world.trace;
    await world.advance(STOPPED_MS);
    const late = world.trace.slice(length).find(({ type }) =>
      type === "request"
    );
    if (late !== undefined) {
      this.#state.fail(
        "no request when idle",
        `stopped: ${JSON.stringify(late)}`,
      );
    }
  }
}
