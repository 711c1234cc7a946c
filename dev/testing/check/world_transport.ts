import type {
  HttpRequest,
  HttpResponse,
  StreamConnection,
  StreamRequest,
  Transport,
} from "@coracle/operator/client";
import { ChunkQueue, readBody, WholeBody } from "@coracle/operator/internal";
import type { ActiveFault } from "../../apiserver/faults/fault_rule.ts";
import type { Faults } from "../../apiserver/faults/faults.ts";
import { readTarget, verbOf } from "../../apiserver/request/request_info.ts";
import type { Change } from "../../apiserver/storage/history.ts";
import type { Perturbations, WriteVerdict } from "./perturbations.ts";
import type { EventEntry, RequestEntry, TraceSink } from "./trace.ts";
import type { Action, Chooser, Schedule } from "./world_schedule.ts";

const decoder = new TextDecoder();
const encoder = new TextEncoder();
const READS = new Set(["get", "list", "watch"]);

/** Parts of a simulation that its transports share. */
export interface Surroundings {
  /** Transport to the server. */
  readonly inner: Transport;
  readonly faults: Faults;
  readonly schedule: Schedule;
  readonly perturbations: Perturbations;
  readonly chooser: Chooser | undefined;
  readonly trace: TraceSink;
  /** Whether the initial events of a watch are delivered together, untraced. */
  readonly loadsAtOnce?: boolean | undefined;
  /** Counters that continue when the operator is restarted. */
  readonly counters: {
    requests: number;
    writes: number;
    events: number;
    watches: number;
    /** Whether the operator's last request for an object failed. */
    failed: boolean;
  };
  readonly now: () => number;
  /** Called at each activity of the operator. */
  readonly active: () => void;
  /** Called when the operator has renewed a Lease. */
  readonly renewed: () => void;
  /** Returns the changes of the store since the last call. */
  readonly takeChanges: () => Change[];
  /** Records changes that were not made by the operator. */
  readonly attribute: (changes: readonly Change[]) => void;
  readonly crash: (why: string, downMs: number) => void;
  /** Called right before and after a write of the operator. */
  readonly passes?:
    | ((place: "before" | "after", entry: RequestEntry) => void)
    | undefined;
}

interface Pending {
  readonly request: HttpRequest;
  readonly entry: RequestEntry;
  readonly resolve: (response: HttpResponse) => void;
  readonly reject: (error: unknown) => void;
}

/** Event of a watch. */
interface WatchEvent {
  readonly type: string;
  readonly object: {
    readonly metadata?: {
      readonly name?: string;
      readonly namespace?: string;
      readonly uid?: string;
      readonly resourceVersion?: string;
    };
  };
  /** Number of the event; undefined for events that are not counted. */
  readonly n: number | undefined;
  /** Line of the event, as the server sent it. */
  readonly line: string;
}

interface OpenWatch {
  readonly id: number;
  /** Path of the watch, without its query. */
  readonly collection: string;
  /** Whether the initial state is being delivered. */
  isInitial: boolean;
  readonly queue: ChunkQueue;
  close(): void;
}

/**
 * Transport of one simulated process: every request waits until the simulation
 * handles it, and every event of a watch until the simulation delivers it.
 */
export class WorldTransport implements Transport {
  readonly #incarnation: number;
  readonly #world: Surroundings;
  readonly #actions: Set<Action> = new Set();
  /** Collections of watches that have missed events. */
  readonly #gaps: Set<string> = new Set();
  readonly #watches: Set<OpenWatch> = new Set();
  #dropped = false;
  #serving = 0;
  /** Whether the operator has sent a request. */
  isUsed = false;

  constructor(incarnation: number, world: Surroundings) {
    this.#incarnation = incarnation;
    this.#world = world;
  }

  /** Whether the server is handling a request. */
  get isServing(): boolean {
    return this.#serving > 0;
  }

  send(request: HttpRequest): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      if (this.#dropped) return;
      const { signal, method, path } = request;
      if (signal?.aborted) return reject(signal.reason);
      this.#world.active();
      this.isUsed = true;
      const entry = this.#entryOf(request);
      const isWrite = isCounted(entry);
      const onAbort = () => {
        this.#forget(action);
        reject(signal?.reason);
      };
      const key = `${this.#incarnation} ${method} ${path} ${entry.body ?? ""}`;
      const action: Action = {
        key,
        name: isWrite ? key : undefined,
        isWrite,
        run: () => {
          signal?.removeEventListener("abort", onAbort);
          this.#actions.delete(action);
          void this.#serve({ request, entry, resolve, reject });
        },
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#actions.add(action);
      this.#world.schedule.add(action);
    });
  }

  #forget(action: Action): void {
    this.#actions.delete(action);
    this.#world.schedule.delete(action);
  }

  #entryOf(request: HttpRequest): RequestEntry {
    const { method, path, body } = request;
    const info = readTarget(path);
    const { group = "", plural = "", namespace = "", name = "", subresource } =
      info?.resource ?? {};
    return {
      type: "request",
      at: 0,
      n: 0,
      write: undefined,
      incarnation: this.#incarnation,
      verb: info === undefined ? method.toLowerCase() : verbOf(method, info),
      group,
      resource: plural,
      subresource: subresource ?? "",
      namespace,
      name,
      path,
      body: body === undefined || typeof body === "string"
        ? body
        : decoder.decode(body),
      dryRun: info?.query.has("dryRun") ?? false,
      code: 0,
      changed: false,
      answered: false,
    };
  }

  async #serve(pending: Pending): Promise<void> {
    this.#serving++;
    try {
      await this.#handle(pending);
    } catch (error) {
      pending.reject(error);
    } finally {
      const { code, resource, verb } = pending.entry;
      if (resource !== "leases" && (verb !== "watch" || code !== 200)) {
        this.#world.counters.failed = code === 0 ||
          (code >= 300 && code !== 404);
      }
      this.#serving--;
      this.#world.active();
    }
  }

  async #handle({ request, entry, resolve, reject }: Pending): Promise<void> {
    const world = this.#world;
    const { counters, perturbations, trace } = world;
    request.beforeSend?.();
    entry.at = world.now();
    entry.n = ++counters.requests;
    if (isCounted(entry)) entry.write = ++counters.writes;
    world.attribute(world.takeChanges());
    if (entry.write !== undefined) world.passes?.("before", entry);
    if (entry.verb === "list") this.#gaps.delete(collectionOf(entry));
    const verdict: WriteVerdict = entry.write === undefined
      ? {}
      : await this.#verdict(entry.write, targetOf(entry));
    const { crash } = verdict;
    entry.fault = verdict.fault;
    try {
      // The process may have been suspended since it wanted to send this.
      if (verdict.wasSuspended) request.beforeSend?.();
    } catch (error) {
      trace.push(entry);
      return reject(error);
    }
    if (crash?.place === "before") {
      trace.push(entry);
      world.crash(crash.why, crash.downMs);
      return;
    }
    const effect = verdict.effect ?? perturbations.effect(entry);
    const fault = effect && world.faults.add({ effect, count: 1 });
    const isWatch = entry.verb === "watch";
    const closing = new AbortController();
    // Compression takes turns of the event loop that differ by runtime.
    const { "accept-encoding": _, ...headers } = request.headers;
    const sent = world.inner.send({
      method: request.method,
      path: request.path,
      headers,
      repeatedHeaders: request.repeatedHeaders,
      body: request.body,
      signal: isWatch ? closing.signal : undefined,
    });
    const isStale = effect !== undefined && "staleAt" in effect;
    if (!isStale || !isWatch) fault?.remove();
    let response: HttpResponse;
    try {
      response = await sent;
    } catch (error) {
      trace.push(entry);
      this.#noteChanges(entry);
      if (!this.#dropped) reject(error);
      return;
    }
    entry.code = response.status;
    trace.push(entry);
    if (isWatch && response.status === 200) {
      if (this.#dropped) return closing.abort(CLOSED);
      entry.answered = true;
      const body = this.#open(entry, response, { request, closing, fault });
      resolve({
        ...response,
        body,
        cancel: () => body.return().then(() => {}),
      });
      return;
    }
    const bytes = await readBody(response, Infinity);
    this.#noteAnswer(entry, bytes);
    this.#noteChanges(entry);
    if (entry.write !== undefined) world.passes?.("after", entry);
    if (crash?.place === "unanswered") {
      world.crash(crash.why, crash.downMs);
      return;
    }
    if (this.#dropped) return;
    entry.answered = true;
    const { code, resource, verb } = entry;
    if (resource === "leases" && verb === "update" && code === 200) {
      world.renewed();
    }
    resolve({ ...response, body: new WholeBody(bytes) });
    if (crash !== undefined) {
      // The operator sees the answer, but sends nothing any more.
      world.crash(crash.why, crash.downMs);
    }
  }

  async #verdict(write: number, target: string): Promise<WriteVerdict> {
    const { chooser, perturbations } = this.#world;
    const place = chooser?.crash?.(target);
    if (place === undefined) {
      return await perturbations.beforeWrite(write, target);
    }
    const why = `write ${write}, ${place}`;
    return { fault: "crash", crash: { place, why, downMs: 0 } };
  }

  /** Records the outcome of a get or a write from its answer. */
  #noteAnswer(entry: RequestEntry, bytes: Uint8Array): void {
    if (entry.verb === "list" || entry.resource === "") return;
    try {
      const { metadata, reason, details } = JSON.parse(decoder.decode(bytes));
      if (entry.code >= 300) entry.reason = causeOf(details) ?? reason;
      if (entry.code === 422) entry.causes = details?.causes;
      entry.uid = metadata?.uid ?? details?.uid;
      entry.generation = metadata?.generation;
      if (metadata?.resourceVersion) {
        entry.revision = Number(metadata.resourceVersion);
      }
      if (entry.name === "" && metadata?.name) entry.name = metadata.name;
    } catch {
      // Not JSON: a log, or the answer of a pod.
    }
  }

  /** Splits the changes of the store by whether the request made them. */
  #noteChanges(entry: RequestEntry): void {
    const { name, verb, group, resource, namespace } = entry;
    const others: Change[] = [];
    let isAdded = false;
    for (const change of this.#world.takeChanges()) {
      const { object, type } = change;
      const { definition } = object;
      // A refused write changes nothing; the garbage collector deletes a new object
      // whose owner is gone immediately.
      const isOwn = entry.code < 400 && !READS.has(verb) &&
        !(isAdded && type === "DELETED") &&
        definition.group === group &&
        definition.plural === resource && object.namespace === namespace &&
        (object.name === name || name === "");
      if (isOwn) {
        isAdded ||= type === "ADDED";
        entry.changed = true;
        entry.revision ??= change.revision;
        entry.uid ??= object.uid;
      } else others.push(change);
    }
    this.#world.attribute(others);
  }

  #open(
    entry: RequestEntry,
    response: HttpResponse,
    { request, closing, fault }: {
      readonly request: HttpRequest;
      readonly closing: AbortController;
      readonly fault: ActiveFault | undefined;
    },
  ): ChunkQueue {
    const { schedule, counters, perturbations, active, loadsAtOnce } =
      this.#world;
    const id = ++counters.watches;
    const collection = collectionOf(entry);
    const isInitial = entry.path.includes("sendInitialEvents=true");
    if (isInitial) this.#gaps.delete(collection);
    const actions = new Set<Action>();
    const { signal } = request;
    const onAbort = () => {
      queue.fail(signal?.reason);
      watch.close();
    };
    const queue = new ChunkQueue({
      pause() {},
      resume() {},
      leave: () => watch.close(),
    }, { highWaterMark: Infinity });
    const watch: OpenWatch = {
      id,
      collection,
      isInitial,
      queue,
      close: () => {
        if (!this.#watches.delete(watch)) return;
        active();
        signal?.removeEventListener("abort", onAbort);
        closing.abort(CLOSED);
        fault?.remove();
        for (const action of actions) schedule.delete(action);
      },
    };
    this.#watches.add(watch);
    signal?.addEventListener("abort", onAbort, { once: true });
    if (fault !== undefined) perturbations.staleWatch(() => fault.remove());
    let last = 0;
    const add = (
      revision: number,
      run: (n: number | undefined) => void,
      name?: string,
    ) => {
      const isCounted = name !== undefined;
      last = Math.max(last, revision);
      let n: number | undefined;
      const action: Action = {
        name,
        watch: id,
        revision: last,
        blocked() {
          if (!isCounted) return false;
          const isDelayed = perturbations.isDelayed(n ?? counters.events + 1);
          // A delayed event keeps its number, as those that overtake it do.
          if (isDelayed) n ??= ++counters.events;
          return isDelayed;
        },
        run: () => {
          actions.delete(action);
          active();
          run(isCounted ? n ?? ++counters.events : undefined);
        },
      };
      actions.add(action);
      active();
      schedule.add(action);
    };
    if (this.#gaps.has(collection)) {
      // The watch that missed events ended before it was closed.
      perturbations.endGap();
      add(0, () => this.#expire(watch));
      return queue;
    }
    const isQuiet = entry.resource === "leases" || entry.resource === "events";
    let deletion: number | undefined;
    const end = (event: Pick<WatchEvent, "type" | "object">) => {
      if (!this.#watches.has(watch)) return;
      if (
        deletion !== undefined && perturbations.breaks(entry.resource, deletion)
      ) {
        const error = new Error("Cannot read on: the connection was broken");
        return add(last, () => this.#finish(watch, () => queue.fail(error)));
      }
      const metadata = {
        ...event.object.metadata,
        resourceVersion: String(last),
      };
      const ending = { ...event, object: { ...event.object, metadata } };
      const line = JSON.stringify(ending);
      add(last, (n) => this.#deliver(watch, entry, { ...ending, n, line }));
    };
    const pump = async () => {
      let rest = "";
      for await (const chunk of response.body) {
        const lines = (rest + decoder.decode(chunk)).split("\n");
        rest = lines.pop() ?? "";
        if (loadsAtOnce && watch.isInitial) {
          const { promise, resolve } = Promise.withResolvers<void>();
          const end = lines.findIndex((line) => line.startsWith(BOOKMARK));
          const initial = end < 0 ? lines.splice(0) : lines.splice(0, end);
          add(0, () => {
            for (const line of initial) queue.push(encoder.encode(`${line}\n`));
            resolve();
          });
          // The server sends on when this has been read.
          if (initial.length > 0) await promise;
          if (end >= 0) watch.isInitial = false;
        }
        for (const line of lines) {
          const event = JSON.parse(line);
          const { name, namespace, resourceVersion, annotations } =
            event.object?.metadata ?? {};
          if (event.type === "DELETED") deletion = Number(resourceVersion);
          const isEnd = annotations?.["k8s.io/initial-events-end"] === "true";
          if (isEnd && !isQuiet && perturbations.lingers(() => end(event))) {
            last = Math.max(last, Number(resourceVersion));
            continue;
          }
          const isCounted = !isQuiet && event.type !== "BOOKMARK" &&
            event.type !== "ERROR";
          add(
            Number(resourceVersion ?? 0),
            (n) => this.#deliver(watch, entry, { ...event, n, line }),
            isCounted
              ? `${event.type} ${entry.resource}/${
                namespace ?? ""
              }/${name} "resourceVersion":"${resourceVersion}"`
              : undefined,
          );
        }
      }
    };
    pump().then(
      () => add(last, () => this.#finish(watch, () => queue.end())),
      (error) => add(last, () => this.#finish(watch, () => queue.fail(error))),
    );
    return queue;
  }

  #finish(watch: OpenWatch, end: () => void): void {
    end();
    watch.close();
  }

  #deliver(
    watch: OpenWatch,
    { group, resource }: RequestEntry,
    { type, object, n, line }: WatchEvent,
  ): void {
    const { perturbations, trace, now } = this.#world;
    const { name = "", namespace = "", uid = "", resourceVersion = "0" } =
      object.metadata ?? {};
    const revision = Number(resourceVersion);
    const entry: EventEntry = {
      type: "event",
      at: now(),
      n,
      incarnation: this.#incarnation,
      watch: watch.id,
      event: type,
      group,
      resource,
      namespace,
      name,
      uid,
      revision,
    };
    trace.push(entry);
    if (n !== undefined) {
      const { isInitial } = watch;
      const event = { n, group, resource, revision, isInitial };
      entry.fault = perturbations.onEvent(event);
    }
    if (type === "BOOKMARK") watch.isInitial = false;
    const { queue } = watch;
    if (entry.fault === "missed") {
      // The client learns of the gap in the end, by a new list.
      this.#gaps.add(watch.collection);
      perturbations.closeLater(watch, () => this.#expire(watch));
      return;
    }
    if (entry.fault === "cut") {
      const error = new Error("Cannot read on: the connection was broken");
      return this.#finish(watch, () => queue.fail(error));
    }
    if (entry.fault === "expire") return this.#expire(watch);
    queue.push(encoder.encode(`${line}\n`));
  }

  #expire(watch: OpenWatch): void {
    if (!this.#watches.has(watch)) return;
    const { queue, collection } = watch;
    this.#gaps.delete(collection);
    queue.push(encoder.encode(`${EXPIRED}\n`));
    this.#finish(watch, () => queue.end());
  }

  /** Abandons all requests without an answer, and closes all watches. */
  drop(): void {
    this.#dropped = true;
    for (const action of this.#actions) this.#world.schedule.delete(action);
    this.#actions.clear();
    for (const watch of [...this.#watches]) watch.close();
  }

  async connect(request: StreamRequest): Promise<StreamConnection> {
    const { inner } = this.#world;
    if (inner.connect === undefined) {
      throw new Error("Cannot open a stream: the transport has none");
    }
    return await inner.connect(request);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** Error that ends the stream of a watch; shared to save stack traces. */
const CLOSED = new Error("Cannot read on: the watch was closed");

const EXPIRED = JSON.stringify({
  type: "ERROR",
  object: {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: "too old resource version",
    reason: "Expired",
    code: 410,
  },
});

/** Beginning of the line that ends initial events. */
const BOOKMARK = '{"type":"BOOKMARK"';

/** Collection of a list or watch: its path without the query. */
function collectionOf({ path }: RequestEntry): string {
  return path.replace(/\?.*$/s, "");
}

/** Whether a request is a write that gets a number. */
function isCounted(
  { verb, resource, subresource, dryRun }: RequestEntry,
): boolean {
  return !READS.has(verb) && resource !== "" && !dryRun &&
    resource !== "leases" && resource !== "events" &&
    !/reviews?$/.test(resource) && subresource !== "token";
}

/** Request by its verb and object, whatever its content. */
export function targetOf(
  { verb, group, resource, subresource, namespace, name }: RequestEntry,
): string {
  return [verb, group, resource, subresource, namespace, name].join("/");
}

/** Cause of a response with status 403, if it is not a lack of rights. */
function causeOf(
  details: { readonly causes?: readonly { readonly reason?: string }[] } | null,
): string | undefined {
  return details?.causes?.find(({ reason }) =>
    reason === "NamespaceTerminating"
  )?.reason;
}
