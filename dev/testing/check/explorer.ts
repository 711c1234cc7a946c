/**
 * Exhaustive search of the schedules of a scenario: every order of deliveries
 * and writes, with one crash at each write. Equal states are searched once.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { clusterState, UID_REGEXP } from "./state.ts";
import type { RequestEntry, TraceEntry } from "./trace.ts";
import type { World } from "./world.ts";
import type { Action, Chooser } from "./world_schedule.ts";
import { compareTexts } from "@coracle/operator/internal";

/** Radix of the digits that represent the choices of a schedule. */
const DIGITS = 36;
const TIME_REGEXP = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z/g;

/** Graph of the states of a scenario, connected by choices. */
export class ScheduleGraph {
  readonly #next: Map<string, (string | undefined)[]> = new Map();
  /** States of the server in which the operator was already restarted. */
  readonly restarted: Set<string> = new Set();
  /** Queue of the schedules to search, by their first choices. */
  readonly waiting: number[][] = [[]];

  /** Number of states with more than one possible continuation. */
  get states(): number {
    return this.#next.size;
  }

  has(state: string): boolean {
    return this.#next.has(state);
  }

  add(state: string, choices: number): void {
    this.#next.set(state, Array(choices));
  }

  link([state, choice]: readonly [string, number], next: string): void {
    const all = this.#next.get(state);
    if (all !== undefined) all[choice] = next;
  }

  /** Number of schedules; each is a path through the states. */
  count(): number {
    const known = new Map<string, number>();
    const count = (state: string): number => {
      const next = this.#next.get(state);
      if (next === undefined) return 1;
      let found = known.get(state);
      if (found === undefined) {
        found = next.reduce(
          (sum, one) => sum + (one === undefined ? 0 : count(one)),
          0,
        );
        known.set(state, found);
      }
      return found;
    };
    const [first] = this.#next.keys();
    return first === undefined ? 1 : count(first);
  }
}

/** Error that ends a run whose continuation is known from another run. */
class KnownState extends Error {}

/** Chooser of the order of deliveries and writes, and of a crash, in a run. */
export class Explorer implements Chooser {
  readonly #forced: readonly number[];
  readonly #graph: ScheduleGraph | undefined;
  readonly #history: History = new History();
  readonly #path: number[] = [];
  #world: World | undefined;
  #last: readonly [string, number] | undefined;
  #step = 0;
  #crashes = 1;
  ended: Error | undefined;

  /**
   * Creates an explorer for one run.
   *
   * @param forced First choices; after them the first option is always chosen.
   * @param graph Known states, if all schedules are searched.
   */
  constructor(forced: readonly number[], graph?: ScheduleGraph) {
    this.#forced = forced;
    this.#graph = graph;
  }

  /** Choices of the run so far, as text. */
  get choices(): string {
    return choicesText(this.#path);
  }

  /** Whether the run ended early because its continuation is known. */
  get isKnown(): boolean {
    return this.ended instanceof KnownState;
  }

  /** Starts to vary the schedule at a step of the workload. */
  begin(world: World, step: number): void {
    this.#world = world;
    this.#step = step;
  }

  /** Records that the operator is at rest, and has received all events. */
  rest(): void {
    if (this.#world !== undefined) this.#history.rest(this.#world.trace);
  }

  /** Records the end of the run. */
  end(): void {
    if (this.#last !== undefined) this.#graph?.link(this.#last, "");
  }

  order(choices: readonly Action[], pending: readonly Action[]): number {
    const free = choices.findIndex(({ name }) => name === undefined);
    if (free >= 0 || this.#world === undefined) return Math.max(free, 0);
    return this.#choose(
      choices.length,
      () =>
        this.#state(pending.flatMap(({ name }) => name ?? []), this.#server()),
    );
  }

  crash(target: string): "before" | "unanswered" | undefined {
    if (this.#world === undefined || this.#crashes === 0) return undefined;
    const server = this.#server();
    const graph = this.#graph;
    // A restarted operator knows nothing but the state of the server.
    const isNew = graph === undefined || !graph.restarted.has(server);
    const count = isNew ? 3 : 2;
    const choice = this.#choose(count, () => {
      graph?.restarted.add(server);
      return this.#state([`write ${target}`], server);
    });
    if (choice === 0) return undefined;
    this.#crashes--;
    return choice === 1 ? "unanswered" : "before";
  }

  #choose(count: number, stateOf: () => string): number {
    const at = this.#path.length;
    const graph = this.#graph;
    let choice = this.#forced[at] ?? 0;
    if (graph === undefined) {
      choice = Math.min(choice, count - 1);
    } else {
      const state = stateOf();
      if (this.#last !== undefined) graph.link(this.#last, state);
      if (at >= this.#forced.length) {
        if (graph.has(state)) {
          this.ended = new KnownState("The rest of this schedule is known");
          return 0;
        }
        graph.add(state, count);
        for (let other = 1; other < count; other++) {
          graph.waiting.push([...this.#path, other]);
        }
      }
      this.#last = [state, choice];
    }
    this.#path.push(choice);
    return choice;
  }

  #server(): string {
    const objects = Object.values(this.#world!.snapshot());
    return digest([this.#step, ...clusterState(objects as never)]);
  }

  #state(pending: readonly string[], server: string): string {
    const { trace } = this.#world!;
    return digest([
      server,
      this.#crashes,
      this.#history.known(trace),
      pending.map((name) => this.#history.plain(name)).sort(),
    ]);
  }
}

function digest(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("base64");
}

/** Formats choices as text, such as `aac`, without first options at the end. */
export function choicesText(choices: readonly number[]): string {
  const last = choices.findLastIndex((choice) => choice > 0);
  return choices.slice(0, last + 1).map((choice) =>
    (choice + 10).toString(DIGITS)
  ).join("") || "a";
}

export function readChoices(text: string): readonly number[] {
  return [...text].map((digit) => Math.max(parseInt(digit, DIGITS) - 10, 0));
}

/**
 * History of the requests and events of an operator, as far as it can affect
 * later decisions. A killed operator forgets both. Requests from before it was
 * at rest are kept as a set, and the order of requests for different objects is
 * not kept.
 */
class History {
  #read = 0;
  /** Requests with outcomes by object, since the operator was last at rest. */
  readonly #requests: Map<string, string[]> = new Map();
  /** Requests that succeeded before the operator was last at rest. */
  readonly #before: Set<string> = new Set();
  /** Delivered events by resource, since the operator was last at rest. */
  readonly #events: Map<string, string[]> = new Map();
  /** Numbers of created and deleted objects, and of external calls. */
  readonly #summary: Map<string, number> = new Map();
  /** Constant names of UIDs. */
  readonly #uids: Map<string, string> = new Map();
  readonly #revisions: Map<string, string> = new Map();
  readonly #counts: Map<string, number> = new Map();

  known(trace: readonly TraceEntry[]): unknown {
    this.#take(trace);
    return [
      [...this.#requests].sort(byKey),
      [...this.#before].sort(),
      [...this.#events].sort(byKey),
      [...this.#summary].sort(byKey),
    ];
  }

  rest(trace: readonly TraceEntry[]): void {
    this.#take(trace);
    for (const all of this.#requests.values()) {
      for (const one of all) if (/ 2\d\d$/.test(one)) this.#before.add(one);
    }
    this.#requests.clear();
    this.#events.clear();
  }

  /** Replaces UIDs, revisions and times in a text by constant names. */
  plain(text: string): string {
    return text
      .replace(UID_REGEXP, (uid) => this.#uids.get(uid) ?? uid)
      .replace(
        /"resourceVersion":"(\d+)"/g,
        (_, revision: string) => this.#revisions.get(revision) ?? revision,
      )
      .replace(TIME_REGEXP, "<time>");
  }

  #take(trace: readonly TraceEntry[]): void {
    for (; this.#read < trace.length; this.#read++) {
      const entry = trace[this.#read]!;
      switch (entry.type) {
        case "start":
          this.#requests.clear();
          this.#before.clear();
          this.#events.clear();
          break;
        case "request":
          this.#request(entry);
          break;
        case "event": {
          if (entry.n === undefined) break;
          const { resource, uid, revision, event } = entry;
          const object = keyOf(entry);
          this.#name(object, uid, revision);
          add(
            this.#events,
            resource,
            `${event} ${object} ${this.#revisions.get(String(revision))}`,
          );
          break;
        }
        case "actor":
          this.#name(keyOf(entry), entry.uid, entry.revision);
          break;
        case "external":
          this.#sum(`${entry.method} ${entry.url} ${entry.body}`);
      }
    }
  }

  #request(entry: RequestEntry): void {
    const { verb, resource, code, uid, revision, changed, answered } = entry;
    if (verb === "watch" || resource === "leases" || resource === "events") {
      return;
    }
    const object = keyOf(entry);
    if (changed) {
      this.#name(object, uid, revision);
      if (verb.startsWith("delete")) this.#sum(`deleted ${object}`);
      else if (code === 201) this.#sum(`created ${object}`);
    }
    const body = this.plain(entry.body ?? "");
    const seen = this.#revisions.get(String(revision)) ?? "";
    add(
      this.#requests,
      object,
      `${verb} ${entry.subresource} ${body} ${answered} ${seen} ${code}`,
    );
  }

  #sum(what: string): void {
    this.#summary.set(what, (this.#summary.get(what) ?? 0) + 1);
  }

  #name(
    object: string,
    uid: string | undefined,
    revision: number | undefined,
  ): void {
    if (uid !== undefined && !this.#uids.has(uid)) {
      this.#uids.set(uid, `<uid ${this.#next(`uid ${object}`)}>`);
    }
    if (revision !== undefined && !this.#revisions.has(String(revision))) {
      this.#revisions.set(String(revision), `@${this.#next(object)}`);
    }
  }

  #next(name: string): string {
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    return `${name}#${count}`;
  }
}

function keyOf(
  { resource, namespace, name }: Pick<
    RequestEntry,
    "resource" | "namespace" | "name"
  >,
): string {
  return `${resource}/${namespace}/${name}`;
}

function add(to: Map<string, string[]>, key: string, value: string): void {
  const list = to.get(key);
  if (list === undefined) to.set(key, [value]);
  else list.push(value);
}

function byKey(
  [a]: readonly [string, unknown],
  [b]: readonly [string, unknown],
): number {
  return compareTexts(a, b);
}
