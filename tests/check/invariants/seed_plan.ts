import type { Perturbation } from "../../../dev/testing/check/perturbations.ts";
import { Random } from "../../soak/random.ts";

/** Kinds of primaries, the first has an `observedGeneration`. */
export const KINDS = ["Ship", "Crew"] as const;
/** Namespaces of the primaries. */
export const NAMESPACES = ["east", "west"] as const;
/** Kind that an observer finds by discovery. */
export const CARGO = "Cargo";
/** Label that the selection of some controllers asks for. */
export const SELECTED = { tier: "gold" } as const;

/** One controller of a generated operator. */
export interface ControllerPlan {
  readonly name: string;
  readonly kind: (typeof KINDS)[number];
  /** How it writes its children, which are ConfigMaps. */
  readonly write: "apply" | "create" | "patch" | "modify" | "replace";
  readonly cleanup: boolean;
  readonly allEvents: boolean;
  /** Whether its children depend on the ConfigMap "settings". */
  readonly reads: boolean;
  readonly selects: boolean;
  readonly namespaces: "all" | readonly string[];
  /** How the status is written; "none" for a controller that writes none. */
  readonly status: "none" | "patch" | "json" | "replace";
  /** Share of the runs that fail by themselves. */
  readonly failures: number;
  /** Longest time that a run takes, in milliseconds. */
  readonly lasts: number;
  readonly concurrency: number;
  readonly timeout: number | undefined;
  /** Interval until the next run, in milliseconds; undefined for none. */
  readonly interval: number | undefined;
  /**
   * Longest time of a run that ignores its signal, in milliseconds; undefined for
   * none.
   */
  readonly stubborn?: number | undefined;
  /** Whether it writes a field of the spec of its primaries. */
  readonly stamps?: boolean | undefined;
}

/** What a user does to an object. */
export type ObjectStep =
  & {
    readonly namespace: string;
    readonly name: string;
    /** Milliseconds until the next step. */
    readonly then: number;
  }
  & (
    | {
      readonly do: "put";
      readonly kind: (typeof KINDS)[number];
      readonly value: string;
      readonly size: number;
      readonly isGold: boolean;
    }
    | { readonly do: "mark"; readonly kind: (typeof KINDS)[number] }
    /** Adds a finalizer of the user, or removes it. */
    | {
      readonly do: "guard" | "unguard";
      readonly kind: (typeof KINDS)[number];
    }
    | { readonly do: "remove"; readonly kind: (typeof KINDS)[number] }
    | { readonly do: "set"; readonly value: string }
  );

/** Changes the namespaces of a controller while it runs. */
export interface WatchStep {
  readonly do: "watch";
  readonly controller: string;
  readonly namespaces: ControllerPlan["namespaces"];
  readonly then: number;
}

/** Changes what surrounds the objects, or ends the operator as SIGTERM does. */
export type OtherStep =
  & { readonly then: number }
  & (
    | { readonly do: "stop" | "redefine" | "scribble" }
    | { readonly do: "found" | "drop"; readonly namespace: string }
    | {
      readonly do: "observe";
      readonly namespaces: readonly string[] | undefined;
    }
  );

/** What happens to the objects and the operator, in this order. */
export type Step = ObjectStep | WatchStep | OtherStep;

/** Trouble on the way to the server, in addition to that of the world. */
export interface NetworkPlan {
  /** Share of the requests that are answered late. */
  readonly slow: number;
  /** Longest delay of an answer, in milliseconds. */
  readonly longest: number;
  /**
   * Time from which the Lease requests of the first incarnation are not answered
   * for a while, in milliseconds. Writes right before it are answered late.
   */
  readonly cutAt: number | undefined;
  readonly lateness: number;
}

/** Everything that a seed decides. */
export interface SeedPlan {
  readonly seed: number;
  readonly coordination: "none" | "leader" | "sharding";
  readonly controllers: readonly ControllerPlan[];
  readonly steps: readonly Step[];
  readonly network: NetworkPlan;
  readonly perturbations: readonly Perturbation[];
  /** Kinds that the program reads beside its controllers. */
  readonly observed: readonly (typeof KINDS[number] | typeof CARGO)[];
  /** Kind whose objects the program writes beside its controllers. */
  readonly scribbled?: (typeof KINDS)[number] | undefined;
}

const SECOND_MS = 1_000;
const NAMESPACE_CHOICES = ["all", "all", ["east"], ["east", "west"]] as const;

/** Returns the plan of a seed. */
export function planOf(seed: number): SeedPlan {
  const random = new Random(seed * 7_919 + 17);
  const chance = (share: number) => random.next() < share;
  const coordination: SeedPlan["coordination"] = chance(0.65)
    ? "none"
    : chance(0.6)
    ? "leader"
    : "sharding";
  const controllers = Array.from(
    { length: 1 + random.below(3) },
    (_, index) => controllerPlan(random, index),
  );
  const kinds = [...new Set(controllers.map(({ kind }) => kind))];
  const steps: Step[] = Array.from(
    { length: 3 + random.below(8) },
    () => objectStep(random, kinds, controllers),
  );
  const network = {
    slow: chance(0.4) ? random.pick([0.05, 0.2, 0.5]) : 0,
    longest: random.pick([100, 2 * SECOND_MS, 8 * SECOND_MS]),
    cutAt: coordination !== "none" && chance(0.5)
      ? random.below(40 * SECOND_MS)
      : undefined,
    lateness: random.below(18 * SECOND_MS),
  };
  const perturbations = Array.from(
    { length: random.below(4) },
    () => perturbation(random, kinds, coordination),
  );
  if (coordination !== "none" && chance(0.8)) {
    perturbations.push({ do: "twins", write: 1 + random.below(4) });
  }
  if (chance(0.25)) addWatchSteps(random, controllers, steps);
  const plan = { seed, coordination, controllers, steps, network };
  return rivalry({ ...plan, perturbations, ...surroundings(plan) });
}

/**
 * Adds what others do at the same time: changes amid first states, finalizers of
 * the user, own changes of the spec and writes of the program; drawn by a
 * generator of its own.
 */
function rivalry(plan: SeedPlan): SeedPlan {
  const random = new Random(plan.seed * 15_485_863 + 3);
  const chance = (share: number) => random.next() < share;
  const { coordination, controllers, perturbations } = plan;
  const kinds = [...new Set(controllers.map(({ kind }) => kind))];
  const steps: Step[] = [...plan.steps];
  const then = () => random.pick([0, 50, SECOND_MS, 10 * SECOND_MS]);
  const insert = (step: Step, from = 0) => {
    const at = from + random.below(steps.length + 1 - from);
    steps.splice(at, 0, step);
    return at + 1;
  };
  const place = () => ({
    namespace: random.pick(NAMESPACES),
    name: "a",
    kind: random.pick(kinds),
  });
  const put = (object: ReturnType<typeof place>, then: number): Step => ({
    do: "put",
    ...object,
    value: `p${random.below(1_000)}`,
    size: 1,
    isGold: true,
    then,
  });
  const lingers: Perturbation[] = [];
  if (chance(0.12)) {
    const isStale = perturbations.some((one) => one.do === "stale");
    lingers.push({
      do: "linger",
      ms: random.pick([3, 6, 12]) * SECOND_MS,
      breaks: chance(0.5) && !isStale,
    });
    const object = place();
    steps.unshift(
      put(object, random.pick([0, 50])),
      { do: "remove", ...object, then: then() },
    );
  }
  if (chance(0.15)) {
    for (let count = 1 + random.below(3); count > 0; count--) {
      const object = place();
      const guarded = insert(put(object, random.pick([50, 5 * SECOND_MS])));
      const at = insert({ do: "guard", ...object, then: 50 }, guarded);
      insert({ do: "remove", ...object, then: random.pick([0, 0, 50]) }, at);
      if (chance(0.5)) insert({ do: "unguard", ...object, then: then() }, at);
    }
  }
  const stamped = chance(0.25)
    ? controllers.find(({ kind }) => kind === KINDS[0])
    : undefined;
  if (stamped !== undefined) {
    const object = { ...place(), kind: stamped.kind };
    for (let count = 1 + random.below(3); count > 0; count--) {
      insert(put(object, random.pick([0, 50, SECOND_MS])));
    }
  }
  const scribbled = coordination === "none" && chance(0.08)
    ? random.pick(kinds)
    : undefined;
  if (scribbled !== undefined) {
    for (const namespace of NAMESPACES) {
      steps.unshift(put({ namespace, name: "a", kind: scribbled }, 0));
    }
    for (let count = 2 + random.below(3); count > 0; count--) {
      insert({ do: "scribble", then: then() }, NAMESPACES.length);
    }
  }
  // Objects change all the time while replicas hand them over.
  const isRush = coordination !== "none" && chance(0.15);
  if (isRush) {
    const objects = [place(), place(), place()];
    for (let count = 30; count > 0; count--) {
      steps.unshift(put(random.pick(objects), 1.5 * SECOND_MS));
    }
  }
  // The second renewal is answered just before the replica gives up.
  const lateness = 10_200 + random.below(1_300);
  const cutAt = 8_200 + lateness + random.below(1_200);
  const network = isRush && plan.network.cutAt !== undefined
    ? { ...plan.network, cutAt, lateness }
    : plan.network;
  return {
    ...plan,
    network,
    steps,
    scribbled,
    perturbations: [...perturbations, ...lingers],
    controllers: controllers.map((one) => ({
      ...one,
      ...one === stamped && { stamps: true, lasts: SECOND_MS },
      ...isRush && { lasts: 9 * SECOND_MS },
    })),
  };
}

/** Adds what happens around the objects; drawn by a generator of its own. */
function surroundings(
  { seed, coordination, controllers, steps }: Pick<
    SeedPlan,
    "seed" | "coordination" | "controllers" | "steps"
  >,
): Pick<SeedPlan, "controllers" | "steps" | "observed"> {
  const random = new Random(seed * 104_729 + 7);
  const chance = (share: number) => random.next() < share;
  const mixed: Step[] = [...steps];
  const insert = (step: OtherStep, from = 0) => {
    const at = from + random.below(mixed.length + 1 - from);
    mixed.splice(at, 0, step);
    return at + 1;
  };
  const then = () => random.pick([0, 50, SECOND_MS, 10 * SECOND_MS]);
  if (chance(0.15)) {
    const namespace = random.pick(NAMESPACES);
    const at = insert({ do: "drop", namespace, then: then() });
    insert({ do: "found", namespace, then: then() }, at);
  }
  const observed = chance(0.15) ? [random.pick(controllers).kind] : [];
  if (observed.length > 0) {
    for (let count = random.below(4); count > 0; count--) {
      const namespaces = random.pick([undefined, ["east"], NAMESPACES]);
      insert({ do: "observe", namespaces, then: then() });
    }
  }
  const isStopped = chance(coordination === "none" ? 0.05 : 0.25);
  if (isStopped) insert({ do: "stop", then: then() });
  const stubborn = isStopped && chance(0.6) ? 40 * SECOND_MS : undefined;
  const hasCargo = chance(0.06);
  if (hasCargo) insert({ do: "redefine", then: then() });
  // An object is made again while runs for its deletion fail.
  const listener = controllers.find(({ allEvents }) => allEvents);
  const fails = listener !== undefined && chance(0.4) ? 0.5 : 0;
  for (let count = fails > 0 ? 3 : 0; count > 0; count--) {
    const { kind } = listener as ControllerPlan;
    const object = { namespace: "east", name: "a", kind } as const;
    const then = random.pick([50, 5 * SECOND_MS]);
    mixed.push(
      { do: "put", ...object, value: `r${count}`, size: 1, isGold: true, then },
      { do: "remove", ...object, then: 50 },
    );
  }
  return {
    steps: mixed,
    controllers: controllers.map((one) => ({
      ...one,
      stubborn: one.timeout === undefined ? stubborn : undefined,
      ...one === listener && fails > 0
        ? { failures: fails, lasts: 3 * SECOND_MS }
        : {},
    })),
    observed: hasCargo ? [...observed, CARGO] : observed,
  };
}

function controllerPlan(random: Random, index: number): ControllerPlan {
  const chance = (share: number) => random.next() < share;
  const allEvents = chance(0.2);
  return {
    name: `c${index}`,
    kind: random.pick(KINDS),
    write: random.pick(["apply", "create", "patch", "modify", "replace"]),
    cleanup: !allEvents && chance(0.5),
    allEvents,
    reads: chance(0.4),
    selects: chance(0.3),
    namespaces: random.pick(NAMESPACE_CHOICES),
    status: random.pick(["none", "patch", "patch", "json", "replace"]),
    failures: chance(0.3) ? 0.2 : 0,
    lasts: random.pick([0, 0, 200, 3 * SECOND_MS]),
    concurrency: random.pick([1, 2, 10]),
    timeout: chance(0.15) ? 1_500 : undefined,
    interval: chance(0.1) ? 30 * SECOND_MS : undefined,
  };
}

/** Inserts changes of a controller's namespaces between the other steps. */
function addWatchSteps(
  random: Random,
  controllers: readonly ControllerPlan[],
  steps: Step[],
): void {
  const { name } = random.pick(controllers);
  for (let count = 1 + random.below(4); count > 0; count--) {
    steps.splice(random.below(steps.length + 1), 0, {
      do: "watch",
      controller: name,
      namespaces: random.pick([...NAMESPACE_CHOICES, ["west"]]),
      then: random.pick([0, 0, 50, SECOND_MS, 10 * SECOND_MS]),
    });
  }
}

function objectStep(
  random: Random,
  kinds: readonly (typeof KINDS)[number][],
  controllers: readonly ControllerPlan[],
): ObjectStep {
  const namespace = random.pick(NAMESPACES);
  const name = random.pick(["a", "b"]);
  const kind = random.pick(kinds);
  const then = random.pick([0, 0, 50, SECOND_MS, 10 * SECOND_MS]);
  const common = { namespace, name, kind, then };
  const choice = random.next();
  if (choice < 0.15) return { do: "remove", ...common };
  if (choice < 0.25) return { do: "mark", ...common };
  const value = `v${random.below(1_000)}`;
  if (choice < 0.35) {
    return { do: "set", namespace, name: "settings", value, then };
  }
  // A finalizer outside of the selection would never be removed.
  const isFixed = controllers.some((one) =>
    one.kind === kind && one.selects && one.cleanup
  );
  const isGold = isFixed ? name !== "b" : random.next() < 0.7;
  return { do: "put", ...common, value, size: random.below(3), isGold };
}

function perturbation(
  random: Random,
  kinds: readonly (typeof KINDS)[number][],
  coordination: SeedPlan["coordination"],
): Perturbation {
  const write = 1 + random.below(20);
  const event = 1 + random.below(30);
  const revision = 40 + random.below(60);
  const namespace = random.pick(NAMESPACES);
  const name = random.pick(["a", "b"]);
  const target = {
    apiVersion: "fleet.coracle.dev/v1",
    kind: random.pick(kinds),
    name,
    namespace,
  };
  const child = {
    apiVersion: "v1",
    kind: "ConfigMap",
    name: `${name}-c0-0`,
    namespace,
  };
  const choices: readonly Perturbation[] = [
    {
      do: "crash",
      write,
      place: random.pick(["before", "unanswered", "after"]),
      downMs: random.pick([0, 0, 5 * SECOND_MS]),
    },
    { do: "stale", write, revision, ms: 30 * SECOND_MS },
    {
      do: "missed",
      resource: random.pick(["ships", "crews", "configmaps"]),
      from: revision,
      to: revision + 1 + random.below(10),
    },
    { do: "order", event, after: event + 1 + random.below(4) },
    { do: "cut", event },
    { do: "expire", event },
    { do: "conflict", write, times: 1 + random.below(3) },
    {
      do: "refuse",
      write,
      times: 1 + random.below(4),
      code: random.pick([403, 422, 500, 503]),
    },
    { do: "throttle", write, ms: random.below(20) * SECOND_MS },
    { do: "lost", write },
    { do: "clock", write, ms: random.pick([-1, 1]) * 3_600_000 },
    {
      do: "edit",
      write,
      target,
      patch: { metadata: { annotations: { foreign: "1" } } },
    },
    {
      do: "edit",
      write,
      target,
      patch: { spec: { value: `e${random.below(1_000)}` } },
    },
    { do: "edit", write, target: child, patch: { data: { value: "foreign" } } },
    { do: "edit", write, target: child, delete: true },
    { do: "edit", write, target, delete: true },
  ];
  if (coordination !== "none" && random.next() < 0.4) {
    return { do: "leader", write };
  }
  return random.pick(choices);
}
