/**
 * `coracle replay`: repeats the runs of a recording with the operator of a file, on a
 * virtual clock, and tells which differ.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { AsyncLocalStorage } from "node:async_hooks";
import {
  Client,
  type Clock,
  type Kind,
  type ResolvedKind,
  silentLogger,
  type Transport,
} from "@coracle/operator/client";
import {
  blanked,
  type Controller,
  hasHidden,
  isDiscovery,
  liveName,
  needlessName,
  recordedErrorText,
  replaceHost,
  type ReplayedParts,
  sameKind,
  textHash,
  wasCutShort,
} from "@coracle/operator/internal";
import { seededRandom } from "../../apiserver/random.ts";
import { Programs, realSleep, settleWork } from "../check/settled_work.ts";
import { operatorSource } from "../check/operator_source.ts";
import { WorldClock } from "../check/world_clock.ts";
import { replaceGlobals } from "../check/world_globals.ts";
import { replaceHttp } from "../check/world_http.ts";
import { replaceProcess } from "../check/world_process.ts";
import { replaceSockets } from "../check/world_sockets.ts";
import { replaceServers } from "../check/world_servers.ts";
import type { KeptRun, RecordedProcess, Recording } from "./read_recording.ts";
import { ReplayedRun, responseOf } from "./replayed_run.ts";
import type { ReplayReport, RunDifference } from "./replay_report.ts";

/** Real time that work on other threads may take, in milliseconds. */
const MAX_REAL_MS = 2_000;
/** How late a timer may be in virtual time, in milliseconds. */
const LATE_MS = 100;
/** Time in which an answer and an abort come at once, in milliseconds. */
const AT_ONCE_MS = 1;
/** Maximum number of differences that are reported. */
const MAX_DIFFERENCES = 100;
/** Seed of the random numbers, which are others than those of the recorded runs. */
const SEED = 0x5eed;
const realNow = performance.now.bind(performance);

/** Options of {@linkcode replayOperator}. */
export interface ReplaySettings {
  /** File of the operator. */
  readonly file: string;
  /** Export that is the operator. */
  readonly export?: string | undefined;
  readonly recording: Recording;
  /** Key of the only primary whose runs are repeated. */
  readonly object?: string | undefined;
  /** Whether to end with the first run that differs. */
  readonly untilFirst?: boolean | undefined;
  /** Called as the work goes on, with the numbers of runs. */
  readonly onProgress?: ((done: number, all: number) => void) | undefined;
}

/**
 * Repeats the runs of a recording, and compares their requests.
 *
 * @throws {TypeError} If the file creates no operator.
 * @throws {RangeError} If the recording has no run of the object, or of a controller of
 * the operator.
 */
export async function replayOperator(
  settings: ReplaySettings,
): Promise<ReplayReport> {
  const { recording, object } = settings;
  const chosen = recording.processes.map((process) => ({
    ...process,
    runs: process.runs.filter(({ key }) =>
      object === undefined || key === object
    ),
  })).filter(({ runs }) => runs.length > 0);
  const all = chosen.flatMap(({ runs }) => runs);
  if (all.length === 0) {
    throw new RangeError(
      `Cannot replay the runs of ${object}: the recording has none of them`,
    );
  }
  const replayed: ReplayedRun[] = [];
  const missing = new Set<string>();
  for (const process of chosen) {
    const replay = new ProcessReplay(process, {
      ...settings,
      onRun: () =>
        settings.onProgress?.(replayed.length + replay.runs.length, all.length),
    });
    try {
      await replay.run(missing);
    } finally {
      replayed.push(...replay.runs);
    }
    if (settings.untilFirst && replay.hasDiffered) break;
  }
  if (replayed.length === 0) {
    throw new RangeError(
      `Cannot replay the recording: the operator must have one of its controllers: received the runs of ${
        [...missing].join(", ")
      }`,
    );
  }
  return reportOf(replayed, {
    recording,
    missing,
    isWhole: object === undefined,
  });
}

function reportOf(
  replayed: readonly ReplayedRun[],
  { recording, missing, isWhole }: {
    readonly recording: Recording;
    readonly missing: ReadonlySet<string>;
    readonly isWhole: boolean;
  },
): ReplayReport {
  const differences = replayed.flatMap((one) => one.report() ?? []);
  const unrepeatable: Record<string, number> = {};
  for (const { unrepeatable: why } of replayed) {
    if (why !== undefined) unrepeatable[why] = (unrepeatable[why] ?? 0) + 1;
  }
  const times = replayed.map(({ kept }) => kept.at).sort((a, b) => a - b);
  const timeOf = (time: number) => new Date(time).toISOString();
  const counted = (count: number, text: string) =>
    count > 0 && isWhole ? [`${count} ${text}`] : [];
  return {
    runs: replayed.length,
    objects: new Set(replayed.map(({ kept }) => kept.key)).size,
    requests: replayed.reduce(
      (sum, { kept }) =>
        sum + kept.steps.filter(({ request }) => request).length,
      0,
    ),
    equal: replayed.reduce((sum, { equal }) => sum + equal, 0),
    from: timeOf(times[0]!),
    to: timeOf(times.at(-1)!),
    differing: differences.length,
    differences: differences.slice(0, MAX_DIFFERENCES) as RunDifference[],
    unrepeatable,
    notes: [
      ...[...missing].map((controller) =>
        `The operator has no controller "${controller}", whose runs are left out.`
      ),
      ...counted(
        recording.incomplete,
        "runs are left out, as what they read is no longer in the recording.",
      ),
      ...counted(
        recording.missing,
        "runs are not in the recording, which was not written fast enough.",
      ),
      ...counted(recording.damaged, "parts of the recording are damaged."),
    ],
  };
}

/** What happened next in the recording. */
type Moment =
  & { readonly n: number; readonly at: number; readonly kept: KeptRun }
  & (
    | { readonly type: "start" | "end" }
    | { readonly type: "step"; readonly step: KeptRun["steps"][number] }
  );

type ProcessSettings = ReplaySettings & { readonly onRun: () => void };

/** Executors that repeat the runs of one recorded process. */
class ProcessReplay {
  readonly runs: ReplayedRun[] = [];
  readonly #process: RecordedProcess;
  readonly #settings: ProcessSettings;
  readonly #clock: WorldClock;
  readonly #view: Clock;
  readonly #start: number;
  readonly #current: AsyncLocalStorage<ReplayedRun> = new AsyncLocalStorage();
  readonly #objects: Map<number, unknown> = new Map();
  readonly #executors: Map<string, Executor> = new Map();
  readonly #active: Map<KeptRun, ReplayedRun> = new Map();
  readonly #transport: Transport;
  #activity = 0;
  #working = 0;
  readonly #programs = new Programs();

  constructor(
    process: RecordedProcess,
    settings: ProcessSettings,
  ) {
    this.#process = process;
    this.#settings = settings;
    this.#start = process.runs[0]!.at;
    this.#clock = new WorldClock(this.#start);
    this.#view = this.#clock.view();
    this.#transport = {
      send: (request) => {
        this.#activity++;
        const { method, path, headers, body, signal } = request;
        if (method === "GET" && isDiscovery(path)) {
          const known = process.discovery.get(path);
          return Promise.resolve(
            known === undefined
              ? responseOf(404, NOT_FOUND)
              : responseOf(200, known),
          );
        }
        const run = this.#current.getStore();
        if (run === undefined) return Promise.reject(outside());
        const text = body instanceof Uint8Array
          ? new TextDecoder().decode(body)
          : body;
        const type = headers["content-type"];
        return run.send({ method, path, type, body: text }, signal);
      },
      close: () => Promise.resolve(),
    };
  }

  /** Whether a run has differed. */
  get hasDiffered(): boolean {
    return this.runs.some(({ difference }) => difference !== undefined);
  }

  /** Repeats all runs, in the order in which they happened. */
  async run(missing: Set<string>): Promise<void> {
    const restore = this.#replaceWorld();
    try {
      await this.#load(missing);
      const moments = momentsOf(this.#process.runs);
      for (const [index, moment] of moments.entries()) {
        await this.#take(moment, moments[index + 1]);
        if (this.#settings.untilFirst && this.hasDiffered) break;
      }
    } finally {
      for (const run of this.#active.values()) run.leave();
      for (const undo of restore.reverse()) undo();
    }
  }

  #replaceWorld(): (() => void)[] {
    const random = seededRandom(SEED);
    const view = () => this.#view;
    return [
      replaceProcess({
        exit: () => {
          throw new Error(
            "Cannot go on: the process of the operator has ended",
          );
        },
        // What a run has left behind fails when its repetition has ended.
        rejected: () => {},
      }),
      replaceHttp(),
      replaceServers(),
      replaceSockets({
        refuse: (address) =>
          this.#current.getStore()?.cannot(
            `they open connections outside of the cluster, to ${address}`,
          ) ?? outside(),
      }),
      replaceHost({
        openTransport: () => this.#transport,
        clock: view,
        random: random.next,
        servesProbes: false,
        ended: new Promise(() => {}),
      }),
      replaceGlobals({
        clock: view,
        random: random.next,
        uuid: random.uid,
        fetch: (request) => {
          const { host } = new URL(request.url);
          const run = this.#current.getStore();
          return Promise.reject(
            run?.cannot(
              `they send requests outside of the cluster, to ${host}`,
            ) ?? outside(),
          );
        },
        working: (change) => {
          this.#working += change;
          this.#activity++;
        },
      }),
    ];
  }

  async #load(missing: Set<string>): Promise<void> {
    const { file, export: name } = this.#settings;
    const { operators } = await operatorSource(file, { export: name });
    for (
      const controller of new Set(
        this.#process.runs.map((run) => run.controller),
      )
    ) {
      const found = operators.map((one) => one.controllerNamed?.(controller))
        .find((one) => one !== undefined);
      if (found === undefined) missing.add(controller);
      else {
        this.#executors.set(
          controller,
          await this.#executor(found as unknown as Controller<never>),
        );
      }
    }
  }

  async #executor(controller: Controller<never>): Promise<Executor> {
    const client = new Client({ transport: this.#transport }, {
      clock: this.#view,
      retry: false,
    });
    // A job has no kind of the cluster.
    const kind = controller.isJob
      ? {
        ...{ plural: "jobs", scope: "Cluster" },
        ...controller.kind,
      } as ResolvedKind<never>
      : await client.resolve(controller.kind);
    return controller.replaying(
      kind,
      this.#parts(controller, kind, client),
    );
  }

  /** What the runs of a controller read and write: what is in the recording. */
  #parts(
    { settings }: Controller<never>,
    resolved: ResolvedKind,
    client: Client,
  ): ReplayedParts<never> {
    const run = () => {
      const current = this.#current.getStore();
      if (current === undefined) throw outside();
      return current;
    };
    const answer = (name: string, kind: Kind, key: unknown) =>
      run().answer(`${name} ${apiKind(kind)} ${textOf(key)}`);
    const later = (...of: Parameters<typeof answer>) =>
      Promise.resolve().then(() => answer(...of));
    const primary = (name: string, key: unknown) => answer(name, resolved, key);
    const none = { succeed() {}, fail() {} };
    const sources = {
      get: (kind: Kind, key: unknown) => later("get", kind, key),
      read: (kind: Kind, key: unknown) => later("read", kind, key),
      readList: (kind: Kind, where?: string) => later("list", kind, where),
      secondaries: (kind: Kind) => later("secondaries", kind, ""),
      getFrom: (source: never, key: unknown) =>
        run().answer(
          `get from source ${settings.sources.indexOf(source)} ${textOf(key)}`,
        ),
      secondariesOf: async (source: never) =>
        await run().answer(
          `secondaries of source ${settings.sources.indexOf(source)}`,
        ) ?? [],
      ofKind: (kind: Kind) =>
        settings.sources.filter((source) =>
          source.kind !== undefined && sameKind(source.kind, kind)
        ),
      named: (name: string) =>
        settings.sources.find((source) => source.name === name),
      beginWrites: () => [],
      add: (source: unknown) => Promise.resolve(source),
      remove: () => Promise.resolve(),
    };
    const cache = {
      get: (key: unknown) => primary("primary", key),
      read: (key: unknown) => later("primary", resolved, key),
      has: (key: unknown) => primary("has", key) === true,
      keys: () => primary("keys", "*") ?? [],
      list: (where?: string) => primary("list", where) ?? [],
      readList: (where?: string) => later("list", resolved, where),
      byIndex: (index: string, value: string) =>
        primary("index", `${index}=${value}`) ?? [],
    };
    const memory = {
      isNeedless(apply: {
        readonly id: string;
        readonly subresource: boolean;
        readonly intent: object;
      }) {
        const decided = run().decision(needlessName(apply));
        const intent = JSON.stringify(apply.intent);
        if (!Array.isArray(decided)) {
          // A Secret that was read later is hidden in it, but not in its hash.
          return decided !== undefined && hasHidden(intent) ||
            decided === textHash(intent);
        }
        const [hash, ...places] = decided as [string, ...number[]];
        return hash === textHash(blanked(intent, places));
      },
      learn() {},
      forget() {},
    };
    const parts = {
      client,
      clock: this.#view,
      log: silentLogger,
      sources,
      primaries: { cache, beginWrite: () => none },
      applied: () => memory,
      recorder: {
        record: (_: unknown, __: unknown, event: {
          readonly type: string;
          readonly reason: string;
          readonly message: string;
        }) => run().event(event),
      },
      writeObserver: {
        needsLive: (of: Kind, key: { name: string; namespace?: string }) =>
          run().decision(liveName(of, key)) === true,
        observe: (_: unknown, { live, isStatus }: {
          readonly live?: unknown;
          readonly isStatus: boolean;
        }) =>
          isStatus && live !== undefined ? run().decision("fight") : undefined,
      },
    };
    return parts as unknown as ReplayedParts<never>;
  }

  async #take(moment: Moment, next: Moment | undefined): Promise<void> {
    const { kept } = moment;
    const executor = this.#executors.get(kept.controller);
    if (executor === undefined) return;
    if (moment.type === "start") {
      await this.#advance(moment.at);
      await this.#begin(kept, executor);
      return;
    }
    const run = this.#active.get(kept);
    if (run === undefined) return;
    if (moment.type === "step") {
      if (run.isOver) return;
      await this.#advance(moment.at);
      await this.#wait(() => run.hasDone(moment.step), run, moment.at);
      run.take(moment.step);
      this.#activity++;
      // One that was aborted at once has not gone on before.
      const isAborted = next?.type === "step" && next.kept === kept &&
        next.step.aborted !== undefined && next.at - moment.at < AT_ONCE_MS;
      if (!isAborted) await this.#settle();
      return;
    }
    if (!run.isOver) {
      await this.#advance(moment.at);
      await this.#wait(
        () => run.result !== undefined || run.hasPending,
        run,
        moment.at,
      );
      run.end(run.result && outcomeOf(run, run.result));
    }
    this.#active.delete(kept);
    run.leave();
    this.#settings.onRun();
  }

  async #begin(kept: KeptRun, executor: Executor): Promise<void> {
    const run = new ReplayedRun(kept, {
      startedAt: this.#view.now(),
      objectOf: (number) => this.#objectOf(number),
      secrets: kept.secrets === true || this.#hasHidden(kept),
    });
    this.runs.push(run);
    this.#active.set(kept, run);
    this.#current.run(run, () => {
      Promise.resolve(executor.dispatch(run.run)).then((result) => {
        run.result = result;
        this.#activity++;
      });
    });
    await this.#settle();
  }

  /** Whether something that a run has read is in place of a secret text. */
  #hasHidden({ primary, reads, bodies }: KeptRun): boolean {
    const numbers = [primary, ...reads.flatMap(([, answer]) => answer)];
    return numbers.some((number) =>
      typeof number === "number" &&
      hasHidden(String(this.#process.object(number)))
    ) || [...bodies.values()].some((body) => hasHidden(String(body)));
  }

  #objectOf(number: number | null): unknown {
    if (number === null) return undefined;
    const known = this.#objects.get(number);
    if (known !== undefined) return known;
    const object = deepFrozen(
      JSON.parse(this.#process.object(number)?.toString() ?? "null"),
    );
    this.#objects.set(number, object);
    return object;
  }

  /** Advances the clock to a time, and lets happen what is due. */
  async #advance(at: number): Promise<void> {
    const until = at - this.#start;
    while (this.#clock.fireNext(until)) await this.#settle();
    this.#clock.moveTo(until);
  }

  /** Waits for what takes real time, or for a timer that is late. */
  async #wait(
    done: () => boolean,
    run: ReplayedRun,
    at: number,
  ): Promise<void> {
    if (done() || run.isOver) return;
    const late = at - this.#start + LATE_MS;
    while (!done() && this.#clock.fireNext(late)) await this.#settle();
    if (run.result !== undefined) return;
    const end = realNow() + MAX_REAL_MS;
    while (!done() && !run.isOver && realNow() < end) {
      await realSleep(1);
      await this.#settle();
    }
  }

  /** Waits until promises and in-process I/O have settled. */
  async #settle(): Promise<void> {
    await settleWork({
      activity: () => this.#clock.activity + this.#activity,
      working: () => this.#working,
      programs: this.#programs,
      limit: MAX_REAL_MS,
    });
  }
}

type Executor = ReturnType<Controller<never>["replaying"]>;

function momentsOf(runs: readonly KeptRun[]): readonly Moment[] {
  return runs.flatMap((kept): Moment[] => [
    { type: "start", n: kept.n, at: kept.at, kept },
    ...kept.steps.map((step) =>
      ({ type: "step", n: step.n, at: kept.at + step.t, kept, step }) as const
    ),
    { type: "end", n: kept.end.n, at: kept.at + kept.end.t, kept },
  ]).sort((a, b) => a.n - b.n);
}

function outcomeOf(
  { run }: ReplayedRun,
  { end, error }: NonNullable<ReplayedRun["result"]>,
): Pick<KeptRun["end"], "delay" | "error" | "outcome"> {
  if (wasCutShort(run, end)) return { outcome: "aborted" };
  const { delay } = end.type === "finalizerRemoved"
    ? { delay: undefined }
    : end;
  if (end.type !== "failed") return { outcome: "done", delay };
  return { outcome: "failed", delay, error: recordedErrorText(error) };
}

const NOT_FOUND = Buffer.from(
  '{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}',
);

function outside(): Error {
  return new Error(
    "Cannot send a request: it is of no run, and a replay reaches no cluster",
  );
}

function apiKind({ group, version, kind }: Kind): string {
  return `${group === "" ? version : `${group}/${version}`} ${kind}`;
}

function textOf(key: unknown): string {
  if (key === undefined) return "*";
  if (typeof key === "string") return key;
  const { namespace, name } = key as { namespace?: string; name: string };
  return namespace ? `${namespace}/${name}` : name;
}

function deepFrozen<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  for (const part of Object.values(value)) deepFrozen(part);
  return Object.freeze(value);
}
