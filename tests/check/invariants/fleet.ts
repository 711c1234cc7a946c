import { z } from "zod";
import type {
  Clock,
  Context,
  ControllerHandle,
  HttpRequest,
  HttpResponse,
  Kind,
  LogFields,
  Logger,
  RunCause,
  Timer,
  Transport,
} from "@coracle/operator/core";
import type { CustomResource, DefinedKind } from "@coracle/operator/crd";
import { untyped } from "../../../core/api/kind.ts";
import { Client } from "../../../core/client/client.ts";
import { host } from "../../../core/client/host.ts";
import { sleep } from "../../../core/clock.ts";
import {
  patchResource,
  patchResourceAndStatus,
  patchStatus,
} from "../../../core/controller/result.ts";
import { defineKind } from "../../../core/crd/define_kind.ts";
import { ConfigMap } from "../../../core/kinds/core_v1.ts";
import { MetricsRegistry } from "../../../core/operator/metrics_registry.ts";
import { Operator } from "../../../core/operator/operator.ts";
import { watch } from "../../../core/controller/watch/watch_source.ts";
import type { WorldStart } from "../../../dev/testing/check/world_options.ts";
import { Random } from "../../soak/random.ts";
import { Observer } from "./observer.ts";
import { Scribe } from "./scribe.ts";
import {
  type ControllerPlan,
  KINDS,
  type NetworkPlan,
  type SeedPlan,
  SELECTED,
} from "./seed_plan.ts";

/** Primary of a generated operator. */
export type Primary = CustomResource<
  { value: string; size: number; stamp?: string | undefined },
  Record<string, unknown>
>;

const GROUP = "fleet.coracle.dev";

/** Kinds of primaries by name. */
export const PRIMARY_KINDS: ReadonlyMap<string, DefinedKind<Primary>> = new Map(
  KINDS.map((kind, index) => [
    kind,
    defineKind({
      group: GROUP,
      version: "v1",
      kind,
      spec: z.object({
        value: z.string(),
        size: z.number(),
        stamp: z.string().optional(),
      }),
      status: z.object({
        c0: z.string(),
        c1: z.string(),
        c2: z.string(),
        ...index === 0 ? { observedGeneration: z.number() } : {},
      }).partial(),
    }) as unknown as DefinedKind<Primary>,
  ]),
);

/** Name of a child of a primary. */
export function childName(primary: string, controller: string, index: number) {
  return `${primary}-${controller}-${index}`;
}

/** Name of the finalizer of a controller. */
export function finalizerOf(controller: string): string {
  return `${GROUP}/${controller}`;
}

/** Event source of the children. */
export type ChildSource = ReturnType<typeof watch<Primary, ConfigMap>>;

/** What the world knows and an operator does not. */
export interface Outside {
  readonly isAlive: (incarnation: number) => boolean;
  /** Whether it holds the Lease of the leader. */
  readonly holder: () => number | undefined;
  /** Whether an object was deleted, as far as its watchers were informed. */
  readonly isGone: (uid: string, incarnation: number) => boolean;
  readonly fail: (invariant: string, detail: string) => void;
  readonly now: () => number;
  /** Called when a replica says that it leads. */
  readonly led: () => void;
  /** Whether the server has shown no state older than one before. */
  readonly isMonotonic: boolean;
  /** Called when a run begins. */
  readonly begun: (
    plan: ControllerPlan,
    primary: Primary,
    incarnation: number,
    cause: RunCause,
  ) => void;
  /** Called when a run has thrown. */
  readonly failed: (
    plan: ControllerPlan,
    primary: Primary,
    incarnation: number,
  ) => void;
}

/** A run that has begun and not ended. */
interface Running {
  readonly incarnation: number;
  readonly since: number;
}

/** Registrations outside of the cluster, by controller and uid. */
export interface Registry {
  readonly entries: Set<string>;
  readonly running: Map<string, Running>;
  /** Newest generation that a run was given, by controller and uid. */
  readonly generations: Map<string, number>;
}

/** Counts of one controller of one incarnation. */
interface Tally {
  calls: number;
  throws: number;
}

/** One incarnation of a generated operator, with all that it is judged by. */
export class Fleet {
  readonly operator: Operator;
  readonly incarnation: number;
  readonly metrics: MetricsRegistry = new MetricsRegistry();
  readonly handles: Map<string, ControllerHandle<Primary>> = new Map();
  readonly tallies: Map<string, Tally> = new Map();
  /** Sources of the children, by controller. */
  readonly sources: Map<string, ChildSource> = new Map();
  /** Answers of the server that reached the client, by verb and code. */
  readonly answers: Map<string, number> = new Map();
  readonly timers: CountingClock;
  readonly client: Client;
  readonly #random: Random;
  readonly #outside: Outside;
  readonly #registry: Registry;
  /** Version and uid of the last write of each object, by controller. */
  readonly #written: Map<string, { uid: string; version: number }> = new Map();
  readonly observers: Map<string, Observer> = new Map();
  readonly scribe: Scribe<Primary> | undefined;
  /** Cleanups that have returned last, by controller and object. */
  readonly #cleaned: Set<string> = new Set();
  /** Whether runs still fail by themselves. */
  calm = false;

  constructor(plan: SeedPlan, start: WorldStart, { registry, outside }: {
    readonly registry: Registry;
    readonly outside: Outside;
  }) {
    const { incarnation } = start;
    this.incarnation = incarnation;
    this.#outside = outside;
    this.#registry = registry;
    this.#random = new Random(plan.seed * 31 + incarnation);
    this.timers = new CountingClock(start.cluster.clock);
    const clock = this.timers;
    const inner = host().openTransport?.() as Transport;
    const network = new Random(plan.seed * 37 + incarnation);
    const transport = new RoughTransport(inner, {
      plan: plan.network,
      clock,
      random: network,
      isFirst: incarnation === 1,
      isCalm: () => this.calm,
      answered: (method, status) => {
        const key = `${method} ${status}`;
        this.answers.set(key, (this.answers.get(key) ?? 0) + 1);
      },
    });
    const logger = this.#logger(start.cluster.logger, {});
    const { metrics } = this;
    this.client = new Client({ transport }, {
      clock,
      logger,
      random: this.#random.next,
      metrics,
    });
    const lease = {
      name: "fleet",
      namespace: "default",
      identity: `replica-${incarnation}`,
      leaseDuration: "30s",
      renewDeadline: "20s",
      retryPeriod: "8s",
    } as const;
    this.operator = new Operator({
      client: this.client,
      clock,
      logger,
      metrics,
      random: this.#random.next,
      startErrors: "wait",
      ...plan.coordination === "leader" ? { leaderElection: lease } : {},
      ...plan.coordination === "sharding" ? { sharding: lease } : {},
    });
    for (const one of plan.controllers) this.#register(one, plan.coordination);
    for (const kind of plan.observed) {
      const watched: Kind = PRIMARY_KINDS.get(kind) ??
        untyped({ group: GROUP, version: "v1", kind });
      this.observers.set(
        kind,
        new Observer(this.client, watched, {
          name: `${kind} of ${incarnation}`,
          clock,
          random: this.#random,
          fail: outside.fail,
        }),
      );
    }
    const scribbled = plan.scribbled && PRIMARY_KINDS.get(plan.scribbled);
    this.scribe = scribbled &&
      new Scribe(this.client, scribbled, { clock, fail: outside.fail });
  }

  /** Ends failures, delays and slow loops. */
  calmDown(): void {
    this.calm = true;
    for (const observer of this.observers.values()) observer.calm = true;
  }

  /** Logger that fails if the end of a cleanup counts as its failure. */
  #logger(inner: Logger, fixed: LogFields): Logger {
    const idOf = (fields?: LogFields): string => {
      const { controller, object } = { ...fixed, ...fields };
      return `${controller} ${object}`;
    };
    // The run of a cleanup has ended; the next may be for another object.
    const ended = (message: string, fields?: LogFields): void => {
      if (message === "Cleaned up") this.#cleaned.delete(idOf(fields));
    };
    return {
      debug: (message, fields) => {
        inner.debug(message, fields);
        ended(message, fields);
      },
      warn: (message, fields) => {
        inner.warn(message, fields);
        if (fields?.["reason"] !== "backwards" || !this.#outside.isMonotonic) {
          return;
        }
        this.#outside.fail("the server's history is one", `${fields["error"]}`);
      },
      error: (message, fields) => inner.error(message, fields),
      info: (message, fields) => {
        inner.info(message, fields);
        ended(message, fields);
        if (message === "Started leading") this.#outside.led();
        const id = idOf(fields);
        if (message !== "Run aborted" || fields?.["because"] !== "deletion") {
          return;
        }
        if (!this.#cleaned.has(id)) return;
        this.#outside.fail("a cleanup ends well", `${id} was aborted`);
      },
      with: (fields) =>
        this.#logger(inner.with(fields), { ...fixed, ...fields }),
    };
  }

  #register(
    plan: ControllerPlan,
    coordination: SeedPlan["coordination"],
  ): void {
    const kind = PRIMARY_KINDS.get(plan.kind) as DefinedKind<Primary>;
    const tally = { calls: 0, throws: 0 };
    this.tallies.set(plan.name, tally);
    const run = (
      primary: Primary,
      ctx: Context<Primary>,
      work: () => Promise<unknown>,
    ) => this.#run({ plan, primary, ctx, tally, coordination }, work);
    const children = watch<Primary, ConfigMap>(ConfigMap);
    this.sources.set(plan.name, children);
    const handle = this.operator.register<Primary>(kind, {
      reconcile: (primary, ctx) =>
        run(primary, ctx, () => this.#reconcile(plan, primary, ctx)) as never,
      ...plan.cleanup
        ? {
          cleanup: (primary, ctx) =>
            run(primary, ctx, () => this.#cleanup(plan, primary)) as never,
        }
        : {},
    }, {
      name: plan.name,
      finalizer: plan.cleanup ? finalizerOf(plan.name) : undefined,
      namespaces: plan.namespaces,
      labelSelector: plan.selects ? `tier=${SELECTED.tier}` : undefined,
      owns: [children],
      watches: plan.reads
        ? [watch(ConfigMap, {
          name: "settings",
          references: ({ metadata: { namespace } }) => [
            `${namespace}/settings`,
          ],
        })]
        : [],
      concurrency: plan.concurrency,
      retry: { initial: "500ms", max: "4s", maxAttempts: Infinity },
      allEvents: plan.allEvents,
      timeout: plan.timeout ?? "1m",
      maxInterval: plan.interval ?? "10h",
    });
    this.handles.set(plan.name, handle);
  }

  /** One call of a reconciler, by which runs are judged. */
  async #run(
    { plan, primary, ctx, tally, coordination }: {
      readonly plan: ControllerPlan;
      readonly primary: Primary;
      readonly ctx: Context<Primary>;
      readonly tally: Tally;
      readonly coordination: SeedPlan["coordination"];
    },
    work: () => Promise<unknown>,
  ): Promise<unknown> {
    const { fail, isAlive, holder, now } = this.#outside;
    const { running } = this.#registry;
    const { namespace, name, uid = "", generation = 0 } = primary.metadata;
    const id = `${plan.name} ${namespace}/${name}`;
    tally.calls++;
    const leader = holder();
    this.#cleaned.delete(id);
    this.#outside.begun(plan, primary, this.incarnation, ctx.cause);
    const other = running.get(id);
    // Nothing can end a run that ignores its signal.
    const isExcused = plan.stubborn !== undefined &&
      other?.incarnation !== this.incarnation;
    if (other !== undefined && isAlive(other.incarnation) && !isExcused) {
      fail(
        "one run at a time",
        `${id} began in incarnation ${this.incarnation} while a run of incarnation ${other.incarnation} went on since ${other.since} ms`,
      );
    }
    if (
      coordination === "leader" && leader !== undefined &&
      leader !== this.incarnation
    ) {
      fail(
        "no run by a deposed leader",
        `${id} began in incarnation ${this.incarnation}, while ${leader} leads`,
      );
    }
    const known = `${plan.name} ${uid}`;
    const { generations } = this.#registry;
    generations.set(known, Math.max(generations.get(known) ?? 0, generation));
    if (plan.allEvents && !ctx.deleted) {
      this.#registry.entries.add(`${plan.name} ${uid}`);
    }
    const mine: Running = { incarnation: this.incarnation, since: now() };
    running.set(id, mine);
    try {
      if (!ctx.deleted) await this.#seesOwnWrites(plan, primary, ctx);
      const { lasts, failures, stubborn } = plan;
      if (!this.calm && stubborn && this.#random.next() < 0.3) {
        await sleep(this.#random.below(stubborn), { clock: this.timers });
      }
      // A run that lasts longer than its timeout fails.
      if (!this.calm && lasts > 0 && this.#random.next() < 0.5) {
        await sleep(this.#random.below(lasts), {
          clock: this.timers,
          signal: ctx.signal,
        });
      }
      if (!this.calm && this.#random.next() < failures) {
        throw new Error("Random failure");
      }
      return await work();
    } catch (error) {
      tally.throws++;
      this.#outside.failed(plan, primary, this.incarnation);
      throw error;
    } finally {
      if (running.get(id) === mine) running.delete(id);
    }
  }

  async #reconcile(
    plan: ControllerPlan,
    primary: Primary,
    ctx: Context<Primary>,
  ): Promise<unknown> {
    const { name, namespace = "", uid = "" } = primary.metadata;
    const { entries } = this.#registry;
    if (ctx.deleted) {
      entries.delete(`${plan.name} ${uid}`);
      return;
    }
    if (plan.cleanup) entries.add(`${plan.name} ${uid}`);
    const settings = plan.reads
      ? (await ctx.get(ConfigMap, "settings"))?.data?.["value"] ?? ""
      : "";
    const value = `${primary.spec.value}/${settings}`;
    for (let index = 0; index < 2; index++) {
      const child = childName(name, plan.name, index);
      if (index >= primary.spec.size) {
        const existing = await ctx.get(ConfigMap, child);
        if (existing !== undefined) await ctx.delete(ConfigMap, child);
        continue;
      }
      const stored = await this.#write(plan, child, { ctx, value });
      const { metadata: { uid = "", resourceVersion } } = stored;
      this.#written.set(`${plan.name} ${namespace}/${child}`, {
        uid,
        version: Number(resourceVersion),
      });
    }
    const status = { [plan.name]: value };
    const fields = { spec: { stamp: primary.spec.value } };
    if (plan.status === "none") return plan.stamps && patchResource(fields);
    const method = plan.status === "patch" ? undefined : plan.status;
    return plan.stamps
      ? patchResourceAndStatus(fields, status, { method })
      : patchStatus(status, { method });
  }

  async #write(
    plan: ControllerPlan,
    name: string,
    { ctx, value }: {
      readonly ctx: Context<Primary>;
      readonly value: string;
    },
  ): Promise<ConfigMap> {
    const data = { value };
    const object = { metadata: { name }, data };
    if (plan.write === "apply") return await ctx.apply(ConfigMap, object);
    const existing = await ctx.get(ConfigMap, name);
    if (existing === undefined) return await ctx.create(ConfigMap, object);
    switch (plan.write) {
      case "patch":
        return await ctx.patch(ConfigMap, name, { data });
      case "modify": {
        const changed = await ctx.modify(ConfigMap, name, (copy) => {
          Object.assign(copy, { data });
        });
        if (changed === undefined) throw new Error(`${name} has gone`);
        return changed;
      }
      default:
        return await ctx.replace(ConfigMap, { ...existing, data });
    }
  }

  async #cleanup(plan: ControllerPlan, { metadata }: Primary): Promise<void> {
    await Promise.resolve();
    const { namespace, name, uid } = metadata;
    this.#registry.entries.delete(`${plan.name} ${uid}`);
    this.#cleaned.add(`${plan.name} ${namespace}/${name}`);
  }

  /** Reads what earlier runs of the incarnation have written. */
  async #seesOwnWrites(
    plan: ControllerPlan,
    { metadata: { name, namespace } }: Primary,
    ctx: Context<Primary>,
  ): Promise<void> {
    const owned = await ctx.secondaries(ConfigMap);
    for (let index = 0; index < 2; index++) {
      const child = childName(name, plan.name, index);
      const id = `${plan.name} ${namespace}/${child}`;
      const written = this.#written.get(id);
      if (written === undefined) continue;
      const { uid, version } = written;
      const cached = await ctx.get(ConfigMap, child);
      if (cached === undefined || cached.metadata.uid !== uid) {
        this.#written.delete(id);
        if (this.#outside.isGone(uid, this.incarnation)) continue;
        if (cached !== undefined) continue;
        this.#outside.fail(
          "own writes are visible",
          `${id} was written at ${version}, and the next run reads nothing`,
        );
        continue;
      }
      if (Number(cached.metadata.resourceVersion) < version) {
        this.#outside.fail(
          "own writes are visible",
          `${id} was written at ${version}, and the next run reads ${cached.metadata.resourceVersion}`,
        );
      }
      const isOwned = cached.metadata.ownerReferences?.some((owner) =>
        owner.uid === ctx.current?.metadata.uid
      );
      // Of two sources of a kind one may have learned before the other that it
      // was deleted.
      const isHidden = !owned.some(({ metadata }) => metadata.uid === uid) &&
        !this.#outside.isGone(uid, this.incarnation);
      if (isOwned && isHidden) {
        this.#outside.fail(
          "own writes are visible",
          `${id} was written at ${version}, and is not among the secondaries`,
        );
      }
    }
  }
}

/** Clock that counts the timers that are set. */
export class CountingClock implements Clock {
  readonly #inner: Clock;
  /** Timers that are set. */
  pending = 0;

  constructor(inner: Clock) {
    this.#inner = inner;
  }

  now(): number {
    return this.#inner.now();
  }

  wallTime(): number {
    return this.#inner.wallTime();
  }

  setTimer(callback: () => void, delay: number): Timer {
    this.pending++;
    let isSet = true;
    const end = () => {
      if (isSet) this.pending--;
      isSet = false;
    };
    const timer = this.#inner.setTimer(() => {
      end();
      callback();
    }, delay);
    return {
      cancel: () => {
        end();
        timer.cancel();
      },
    };
  }
}

/** Transport whose answers are late, and whose Lease requests get lost. */
class RoughTransport implements Transport {
  readonly #inner: Transport;
  readonly #deps: {
    readonly plan: NetworkPlan;
    readonly clock: Clock;
    readonly random: Random;
    readonly isFirst: boolean;
    readonly isCalm: () => boolean;
    readonly answered: (method: string, status: number) => void;
  };

  constructor(
    inner: Transport,
    deps: {
      readonly plan: NetworkPlan;
      readonly clock: Clock;
      readonly random: Random;
      readonly isFirst: boolean;
      readonly isCalm: () => boolean;
      readonly answered: (method: string, status: number) => void;
    },
  ) {
    this.#inner = inner;
    this.#deps = deps;
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    const { clock, answered, isCalm } = this.#deps;
    const { method, path, signal } = request;
    const isWatch = path.includes("watch=");
    const delay = isWatch || isCalm() ? 0 : this.#delay(method, path);
    if (delay === Infinity) {
      return await new Promise((_, reject) =>
        signal?.addEventListener("abort", () => reject(signal.reason))
      );
    }
    const response = await this.#inner.send(request);
    if (delay > 0) await sleep(delay, { clock, signal });
    answered(method, response.status);
    return response;
  }

  /** Milliseconds by which an answer is late; infinite if it never comes. */
  #delay(method: string, path: string): number {
    const { plan, clock, random, isFirst } = this.#deps;
    const { slow, longest, cutAt, lateness } = plan;
    if (isFirst && cutAt !== undefined && path.includes("/leases")) {
      const since = clock.now() - cutAt;
      if (since >= 0 && since < 60_000) return Infinity;
      const isLate = since < 0 && since > -Math.max(8_000, lateness + 1_500);
      if (isLate && method !== "GET") return lateness;
    }
    return random.next() < slow ? random.below(longest) : 0;
  }

  async close(): Promise<void> {
    await this.#inner.close();
  }
}
