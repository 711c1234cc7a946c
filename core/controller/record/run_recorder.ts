/**
 * Recording of runs: what they read and wrote, in the order of all runs. A run is
 * known by its asynchronous context, so that runs and their requests need no change.
 *
 * @module
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { Buffer } from "node:buffer";
import { ApiError } from "../../api/api_error.ts";
import { type Kind, kindText, sameKind } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { keyText, type ObjectKey } from "../../api/object_key.ts";
import { pointerSteps } from "../../patch/json_patch.ts";
import { isJsonObject } from "../../patch/json_value.ts";
import { asBuffer } from "../../json/byte_range.ts";
import type { Client } from "../../client/client.ts";
import type { Middleware } from "../../client/middleware.ts";
import type { ApiRequest } from "../../client/request.ts";
import { WholeBody } from "../../client/transport/chunk_queue.ts";
import type { HttpResponse } from "../../client/transport/transport.ts";
import { shortText } from "../../error_text.ts";
import {
  type ApplyMemory,
  type RememberedApply,
  textHash,
} from "../run/apply_memory.ts";
import type { Dispatcher } from "../run/dispatcher.ts";
import { type Run, type RunResult, wasCutShort } from "../run/run.ts";
import type { RunDeps } from "../run/run_deps.ts";
import type { RunObserver } from "../run/run_observers.ts";
import type { RunPlan } from "../run/run_state.ts";
import { liveName, needlessName } from "./decisions.ts";
import { HeldObjects } from "./held_objects.ts";
import { ObjectNumbers, type ReadKind } from "./object_numbers.ts";
import {
  type Body,
  encoded,
  type Entry,
  textOfBody,
  withoutTexts,
} from "./recorded_entry.ts";
import {
  DISCOVERY,
  isDiscovery,
  MAX_ERROR_LENGTH,
  NO_BODY,
  NOT_KEPT,
  OBJECT,
  type RecordedDecision,
  type RecordedError,
  recordedErrorText,
  type RecordedRead,
  type RecordedStep,
  RUN,
  type RunRecord,
} from "./recording_format.ts";
import { RecordingRing, type RecordingRingDeps } from "./recording_ring.ts";
import {
  blanked,
  secretDigests,
  type SecretPart,
  SecretTexts,
} from "./secrets.ts";

/** Maximum size of a body that is kept, in bytes. */
const MAX_BODY = 1024 * 1024;
/** Maximum size of all bodies of a run. */
const MAX_BODIES = 4 * 1024 * 1024;
/** Maximum number of steps and reads of a run that are kept. */
const MAX_STEPS = 10_000;
/** Paths whose bodies may be of any kind, or secret. */
const PRIVATE = /\/(?:proxy|log|token)(?:[/?]|$)|\/tokenreviews/;
const SECRETS = /^\/api\/v1\/(?:namespaces\/[^/]+\/)?secrets(?:[/?]|$)/;
/** Bytes of the number before an object. */
const NUMBER_BYTES = 4;

/** What is known of a run so far. */
class RunLog {
  readonly n: number;
  readonly began: number;
  readonly reads: RecordedRead[] = [];
  readonly decisions: RecordedDecision[] = [];
  readonly steps: RecordedStep[] = [];
  readonly bodies: Body[] = [];
  at = 0;
  primary: number | undefined;
  size = 0;
  /** Objects that it has read, by number, until one of their runs is written. */
  readonly objects: number[] = [];
  hasSecrets = false;
  hasEnded = false;
  /** Whether it is the log of a discovery, and not of a run. */
  isDiscovery = false;

  constructor(n: number, began: number) {
    this.n = n;
    this.began = began;
  }

  get isFull(): boolean {
    return this.steps.length + this.reads.length > MAX_STEPS;
  }

  /** Keeps a body; returns its length in bytes. */
  keep(body: Body): number {
    const length = typeof body === "string"
      ? Buffer.byteLength(body)
      : body.length;
    if (length > MAX_BODY || this.size + length > MAX_BODIES) return NOT_KEPT;
    this.size += length;
    this.bodies.push(body);
    return length;
  }
}

/** Runs of a controller, as they are recorded. */
export interface RecordedController<P extends KubernetesObject> {
  readonly dispatcher: Pick<Dispatcher<P>, "dispatch">;
  readonly observer: RunObserver<P>;
}

/** Recorder of the runs of an operator. */
export class RunRecorder {
  readonly #deps: Omit<RecordingRingDeps, "onPart">;
  readonly #ring: RecordingRing;
  readonly #client: Client;
  readonly #current: AsyncLocalStorage<RunLog> = new AsyncLocalStorage();
  readonly #redact: ReturnType<typeof secretDigests> = secretDigests();
  readonly #wanted: RegExp | undefined;
  /** Numbers of the objects that the present part has. */
  #numbers: ObjectNumbers = new ObjectNumbers();
  /** Objects that no written run refers to yet. */
  readonly #held: HeldObjects = new HeldObjects();
  /** Texts of the Secrets that any run has read: they may be in what others read. */
  readonly #secrets: SecretTexts = new SecretTexts();
  /** Where the primaries of controllers are, by their dependencies. */
  readonly #primaries: WeakMap<object, ReadKind> = new WeakMap();
  #lastNumber = 0;
  #lastStep = 0;

  /** @param client Client whose discovery is recorded. */
  constructor(deps: Omit<RecordingRingDeps, "onPart">, client: Client) {
    this.#deps = deps;
    this.#ring = new RecordingRing({
      ...deps,
      onPart: () => void this.#beginPart(),
    });
    this.#client = client.with([this.#middleware]);
    const { objects } = deps.settings;
    this.#wanted = objects.includes("*")
      ? undefined
      : new RegExp(`^(?:${objects.map(pattern).join("|")})$`);
  }

  /** Writes what is left, and ends the recording. */
  close(): Promise<void> {
    return this.#ring.close();
  }

  /** Dependencies of runs with which their reads and writes are recorded. */
  observed<P extends KubernetesObject>(deps: RunDeps<P>): RunDeps<P> {
    const { sources, primaries, client, recorder, writeObserver } = deps;
    const { cache } = primaries;
    const primaryKind = this.#primariesOf(deps);
    const primaryText = kindText(deps.kind);
    const kinds = new Map<string, ReadKind>();
    const readKind = (kind: Kind, text: string): ReadKind => {
      let found = kinds.get(text);
      if (found === undefined) {
        found = {
          kind,
          bodyOf: sameKind(kind, deps.kind)
            ? primaryKind.bodyOf
            : ({ metadata }) => sources.bodyOf(kind, metadata),
          // It may be read from the server, which has more than the cache.
          isCached: false,
        };
        kinds.set(text, found);
      }
      return found;
    };
    const read = <R>(
      name: string,
      kind: Kind,
      key: unknown,
      work: () => R,
    ): R => {
      const text = kindText(kind);
      const of = readKind(kind, text);
      return this.#read(`${name} ${text} ${textOf(key)}`, work, of);
    };
    const primary = <R>(name: string, key: unknown, work: () => R): R =>
      this.#read(`${name} ${primaryText} ${textOf(key)}`, work, primaryKind);
    let memory: ApplyMemory | undefined;
    let observedMemory: ApplyMemory | undefined;
    const decided = (applied: ApplyMemory): ApplyMemory => {
      if (observedMemory !== undefined && memory === applied) {
        return observedMemory;
      }
      memory = applied;
      return observedMemory = delegating(applied, {
        isNeedless: (apply) => {
          const isNeedless = applied.isNeedless(apply);
          if (isNeedless) this.#decideNeedless(apply, applied);
          return isNeedless;
        },
      });
    };
    return {
      ...deps,
      client: client.with([this.#middleware]),
      sources: delegating(sources, {
        get: (kind, key) =>
          read("get", kind, key, () => sources.get(kind, key)),
        read: (kind, key, signal) =>
          read("read", kind, key, () => sources.read(kind, key, signal)),
        readList: (kind, where, signal) =>
          read(
            "list",
            kind,
            where,
            () => sources.readList(kind, where, signal),
          ),
        secondaries: (kind, one) =>
          read("secondaries", kind, "", () => sources.secondaries(kind, one)),
        getFrom: (source, key) =>
          this.#read(
            `get from source ${sources.numberOf(source)} ${textOf(key)}`,
            () => sources.getFrom(source, key),
            source.kind && {
              kind: source.kind,
              bodyOf: ({ metadata }) => sources.bodyOf(source.kind!, metadata),
              isCached: false,
            },
          ),
        secondariesOf: (source, one) =>
          this.#read(
            `secondaries of source ${sources.numberOf(source)}`,
            () => sources.secondariesOf(source, one),
            source.kind && {
              kind: source.kind,
              bodyOf: ({ metadata }) => sources.bodyOf(source.kind!, metadata),
              isCached: false,
            },
          ),
      }),
      primaries: delegating(primaries, {
        cache: delegating(cache, {
          get: (key) => primary("primary", key, () => cache.get(key)),
          // A run reads again what it has been given, so that it is recorded.
          resourceVersion: () => undefined,
          read: (key) => primary("primary", key, () => cache.read(key)),
          has: (key) => primary("has", key, () => cache.has(key)),
          keys: () => primary("keys", "*", () => [...cache.keys()]),
          list: (where) => primary("list", where, () => cache.list(where)),
          readList: (where) =>
            primary("list", where, () => cache.readList(where)),
          byIndex: (index, value) =>
            primary(
              "index",
              `${index}=${value}`,
              () => cache.byIndex(index, value),
            ),
        }),
      }),
      recorder: delegating(recorder, {
        record: (about, kind, event) => {
          const { type, reason, message } = event;
          this.#step({ event: { type, reason, message } });
          recorder.record(about, kind, event);
        },
      }),
      applied: () => {
        const memory = deps.applied();
        return memory instanceof Promise
          ? memory.then(decided)
          : decided(memory);
      },
      writeObserver: delegating(writeObserver, {
        needsLive: (kind, key) => {
          const needsLive = writeObserver.needsLive(kind, key);
          if (needsLive) this.#decide(liveName(kind, key), true);
          return needsLive;
        },
        observe: (run, write) => {
          const fight = writeObserver.observe(run, write);
          if (fight !== undefined) this.#decide("fight", fight);
          return fight;
        },
      }),
    };
  }

  /** Where the primaries of a controller are. */
  #primariesOf<P extends KubernetesObject>(deps: RunDeps<P>): ReadKind {
    const { kind, primaries: { cache } } = deps;
    const found = this.#primaries.get(deps) ?? {
      kind,
      bodyOf: ({ metadata }: KubernetesObject) =>
        cache.bodyOf?.(metadata, metadata.resourceVersion),
      isCached: true,
    };
    this.#primaries.set(deps, found);
    return found;
  }

  /** Records the runs that a dispatcher executes. */
  of<P extends KubernetesObject>(
    deps: RunDeps<P>,
    dispatcher: Pick<Dispatcher<P>, "dispatch">,
  ): RecordedController<P> {
    const { controller } = deps;
    const { clock } = this.#deps;
    const primaryKind = this.#primariesOf(deps);
    return {
      dispatcher: {
        dispatch: (run) => {
          const isKept = this.#wanted?.test(run.key) !== false &&
            this.#ring.hasRoom();
          if (!isKept) return dispatcher.dispatch(run);
          const log = new RunLog(++this.#lastStep, run.startedAt);
          log.at = clock.wallTime() - (clock.now() - run.startedAt);
          run.recorded = log;
          if (!run.isUnread) {
            log.primary = this.#number(log, run.primary, primaryKind);
          }
          const { onAbort } = run;
          run.onAbort = (one, aborted) => {
            onAbort?.(one, aborted);
            this.#add(log, { aborted });
          };
          run.onInterrupt = (interrupted) => this.#add(log, { interrupted });
          return this.#current.run(log, () => dispatcher.dispatch(run));
        },
      },
      observer: {
        ended: (run, result, plan) => {
          const { recorded: log } = run;
          if (!(log instanceof RunLog)) return;
          run.recorded = undefined;
          log.hasEnded = true;
          this.#write(controller, log, { run, result, plan });
        },
      },
    };
  }

  #write<P extends KubernetesObject>(
    controller: string,
    log: RunLog,
    { run, result, plan }: {
      readonly run: Run<P>;
      readonly result: RunResult;
      readonly plan: RunPlan | undefined;
    },
  ): void {
    const { key, cause, retry, waited, deleted, finalStateUnknown } = run;
    const { end, error } = result;
    const { hasSecrets } = log;
    const { rescheduleAt = Infinity, timerAt = Infinity, timerCause } = plan ??
      {};
    const nextIn = Math.min(rescheduleAt, timerAt) - run.endedAt;
    // Members of one order, as objects of one shape are made fast.
    const record: RunRecord = {
      controller,
      key,
      n: log.n,
      at: log.at,
      cause,
      attempt: retry.attempt,
      last: retry.last,
      waited,
      deleted: deleted || undefined,
      finalStateUnknown: deleted ? finalStateUnknown : undefined,
      primary: log.primary,
      secrets: hasSecrets || undefined,
      reads: log.reads,
      decisions: log.decisions,
      steps: log.steps,
      end: {
        n: ++this.#lastStep,
        t: run.endedAt - run.startedAt,
        outcome: wasCutShort(run, end)
          ? "aborted"
          : end.type === "failed"
          ? "failed"
          : "done",
        step: run.step ?? "reconcile",
        delay: end.type === "finalizerRemoved" ? undefined : end.delay,
        error: end.type === "failed" ? recordedErrorText(error) : undefined,
        next: nextIn < Infinity
          ? [
            rescheduleAt < timerAt ? "reschedule" : timerCause as string,
            Math.round(nextIn),
          ]
          : undefined,
      },
    };
    this.#encode(RUN, record, log);
  }

  /** Adds an entry and what it refers to, without the values of Secrets. */
  #encode(
    type: number,
    entry: Entry,
    { bodies, objects }: RunLog,
  ): void {
    const secrets = this.#secrets;
    for (const number of objects) {
      const record = this.#held.take(number);
      if (record === undefined) continue;
      const { bytes, start, end } = record;
      const json = asBuffer(bytes).subarray(start + NUMBER_BYTES, end);
      this.#ring.add(OBJECT, [
        number,
        secrets.mayBeIn(record) ? secrets.hideJson(json.toString()) : json,
      ]);
    }
    // Texts of a Secret may be anywhere in what a run read and wrote.
    this.#ring.add(
      type,
      encoded(entry, bodies),
      (record) =>
        secrets.mayBeIn(record)
          ? withoutTexts(entry, bodies, secrets)
          : undefined,
    );
  }

  /** Records the resources of the server, from which kinds are completed. */
  async #beginPart(): Promise<void> {
    this.#numbers = new ObjectNumbers();
    const { log } = this.#deps;
    const found = new RunLog(0, this.#deps.clock.now());
    found.isDiscovery = true;
    try {
      await this.#current.run(found, () => this.#client.resources());
      this.#encode(DISCOVERY, { steps: found.steps }, found);
    } catch (error) {
      log.debug("Cannot record the resources of the server", { error });
    }
  }

  readonly #middleware: Middleware = (next) => (request) => {
    const log = this.#current.getStore();
    const { path } = request;
    const asksKinds = request.method === "GET" && isDiscovery(path);
    if (log === undefined || asksKinds !== log.isDiscovery) {
      return next(request);
    }
    const secrecy = secrecyOf(path);
    const sent = this.#add(log, {
      request: this.#requestOf(log, request, secrecy),
    });
    if (sent === undefined) return next(request);
    return next(request).then(
      (response) => this.#answered(log, { sent, request, secrecy }, response),
      (error: unknown) => {
        this.#add(log, {
          to: sent.n,
          error: errorOf(error),
          ...request.signal?.aborted && { isAborted: true },
        });
        throw error;
      },
    );
  };

  #requestOf(
    log: RunLog,
    { method, path, headers, body }: ApiRequest,
    secrecy: Secrecy,
  ): NonNullable<RecordedStep["request"]> {
    return {
      method,
      path,
      type: headers["content-type"],
      body: body === undefined ? NO_BODY : this.#body(log, secrecy, body),
    };
  }

  #answered(
    log: RunLog,
    { sent, request: { verb, mayPause }, secrecy }: {
      readonly sent: RecordedStep;
      readonly request: ApiRequest;
      readonly secrecy: Secrecy;
    },
    response: HttpResponse,
  ): HttpResponse {
    const { status, body } = response;
    const pause = response.headers["retry-after"];
    const answer = (bytes?: Uint8Array) => {
      this.#add(log, {
        to: sent.n,
        answer: {
          status,
          ...pause !== undefined && { headers: { "retry-after": pause } },
          body: bytes === undefined
            ? NOT_KEPT
            : this.#body(log, secrecy, bytes),
        },
      });
    };
    if (body instanceof WholeBody) {
      answer(body.bytes);
      return response;
    }
    if (mayPause === true || verb === "watch" || verb === "connect") {
      answer();
      return response;
    }
    const collected = collecting(body, answer);
    return {
      status,
      headers: response.headers,
      body: collected,
      cancel: () => response.cancel(),
    };
  }

  /** Keeps a body, without what is secret; returns its length. */
  #body(log: RunLog, secrecy: Secrecy, body: Body): number {
    if (secrecy === "private") return NOT_KEPT;
    if (secrecy === "none") return log.keep(body);
    try {
      const value: unknown = JSON.parse(textOfBody(body));
      const hidden = this.#withoutSecrets(log, value);
      return log.keep(JSON.stringify(hidden));
    } catch {
      return NOT_KEPT;
    }
  }

  /** Secret, list of Secrets, patch of one or another answer without the values. */
  #withoutSecrets(log: RunLog, value: unknown): unknown {
    if (Array.isArray(value)) {
      return value.map((one: { path?: string; value?: unknown }) => {
        if (!isJsonObject(one) || !("value" in one)) return one;
        const path = pointerSteps(String(one.path));
        const part = path.reduceRight<unknown>(
          (inner, name) => ({ [name]: inner }),
          one.value,
        );
        const hidden: unknown = isJsonObject(part)
          ? this.#hide(log, part)
          : part;
        const shown = path.reduce(
          (outer, name) => Object(outer)[name] as unknown,
          hidden,
        );
        return { ...one, value: shown };
      });
    }
    if (!isJsonObject(value)) return value;
    const { items } = value;
    return Array.isArray(items)
      ? {
        ...value,
        items: items.map((one: SecretPart) => this.#hide(log, one)),
      }
      : this.#hide(log, value);
  }

  #hide<S extends SecretPart>(log: RunLog, secret: S): S {
    const hidden = this.#redact(secret);
    const known = this.#secrets.size;
    this.#secrets.add(secret, hidden);
    log.hasSecrets = true;
    // Objects that were read before may have them.
    if (this.#secrets.size > known) this.#numbers = new ObjectNumbers();
    return hidden;
  }

  #step(step: Omit<RecordedStep, "n" | "t">): void {
    const log = this.#current.getStore();
    if (log !== undefined) this.#add(log, step);
  }

  #add(
    log: RunLog,
    step: Omit<RecordedStep, "n" | "t">,
  ): RecordedStep | undefined {
    if (log.hasEnded || log.isFull) return undefined;
    const t = this.#deps.clock.now() - log.began;
    const added = { n: ++this.#lastStep, t, ...step };
    log.steps.push(added);
    return added;
  }

  #decide(name: string, value: unknown): void {
    const log = this.#current.getStore();
    if (log?.hasEnded === false) log.decisions.push([name, value]);
  }

  #decideNeedless(apply: RememberedApply, memory: ApplyMemory): void {
    const intent = this.#secrets.size > 0 && JSON.stringify(apply.intent);
    // What is repeated has other texts in place of secret ones.
    const places = intent ? this.#secrets.placesIn(intent) : [];
    this.#decide(
      needlessName(apply),
      intent && places.length > 0
        ? [textHash(blanked(intent, places)), ...places]
        : memory.intentOf(apply),
    );
  }

  /** Makes a read, and records its result. */
  #read<R>(question: string, work: () => R, of?: ReadKind): R {
    const log = this.#current.getStore();
    if (log === undefined || log.hasEnded || log.isFull) return work();
    const index = log.reads.push([question, null]) - 1;
    const note = (value: unknown) => {
      log.reads[index] = [question, this.#reference(log, value, of)];
    };
    const failed = (error: unknown) => {
      log.reads[index] = [question, { error: errorOf(error) }];
    };
    try {
      const result = work();
      if (result instanceof Promise) result.then(note, failed);
      else note(result);
      return result;
    } catch (error) {
      failed(error);
      throw error;
    }
  }

  #reference(
    log: RunLog,
    value: unknown,
    of: ReadKind | undefined,
  ): RecordedRead[1] {
    if (value === undefined || value === null) return null;
    if (typeof value !== "object") return { value };
    if (!Array.isArray(value)) return this.#number(log, value, of);
    return value.some((one) => typeof one !== "object")
      ? { value }
      : value.map((one: object) => this.#number(log, one, of));
  }

  /** Number of an object, which is recorded if the present part does not have it. */
  #number(log: RunLog, object: object, of: ReadKind | undefined): number {
    const isSecret = of?.kind.kind === "Secret" && of.kind.group === "";
    const shown = isSecret ? this.#hide(log, object) : object;
    // The entry of the run is written: nothing would take what is held for it.
    if (log.hasEnded) return NOT_KEPT;
    const known = this.#numbers.get(object, of);
    if (known !== undefined) {
      if (this.#held.has(known)) log.objects.push(known);
      return known;
    }
    const number = ++this.#lastNumber;
    this.#numbers.set(object, of, number);
    const body = isSecret || of === undefined
      ? undefined
      : of.bodyOf(object as KubernetesObject);
    // It is written with the run, which may read Secrets later.
    this.#held.add(
      number,
      body === undefined
        ? JSON.stringify(shown)
        : asBuffer(body.bytes).subarray(body.start, body.end),
    );
    log.objects.push(number);
    return number;
  }
}

/** What of the bodies of a path may be kept. */
type Secrecy = "none" | "private" | "secrets";

function secrecyOf(path: string): Secrecy {
  if (PRIVATE.test(path)) return "private";
  return SECRETS.test(path) ? "secrets" : "none";
}

/**
 * Object with some members of its own; the others are those of another. Its members
 * are found once, as they are used in each run.
 */
function delegating<T extends object>(target: T, own: Partial<T>): T {
  const members: PropertyDescriptorMap = {};
  for (
    let from: object | null = target;
    from !== null && from !== Object.prototype;
    from = Object.getPrototypeOf(from) as object | null
  ) {
    const found = Object.getOwnPropertyDescriptors(from) as Record<
      string,
      PropertyDescriptor
    >;
    for (const [name, { value }] of Object.entries(found)) {
      if (name in members || name === "constructor") continue;
      members[name] = typeof value === "function"
        ? { value: (value as (...of: unknown[]) => unknown).bind(target) }
        : { get: () => Reflect.get(target, name, target) as unknown };
    }
  }
  for (const [name, value] of Object.entries(own)) members[name] = { value };
  return Object.defineProperties({}, members) as T;
}

/** Body that is handed on in chunks, and given as a whole at its end. */
async function* collecting(
  body: AsyncIterable<Uint8Array>,
  onEnd: (whole: Uint8Array | undefined) => void,
): AsyncGenerator<Uint8Array, void> {
  let chunks: Uint8Array[] | undefined = [];
  let length = 0;
  try {
    for await (const chunk of body) {
      length += chunk.length;
      if (length > MAX_BODY) chunks = undefined;
      // Its memory may serve again.
      chunks?.push(Buffer.from(chunk));
      yield chunk;
    }
  } finally {
    onEnd(chunks && Buffer.concat(chunks));
  }
}

function errorOf(error: unknown): RecordedError {
  const { message = String(error), name, code } = Object(error) as {
    readonly message?: string;
    readonly name?: string;
    readonly code?: unknown;
  };
  return {
    message: shortText(message, MAX_ERROR_LENGTH),
    name,
    ...typeof code === "string" && { code },
    ...ApiError.is(error) && {
      api: {
        status: error.status,
        reason: error.reason,
        details: error.details,
        retryAfter: error.retryAfter,
      },
    },
  };
}

function textOf(key: unknown): string {
  if (key === undefined) return "*";
  return typeof key === "string" ? key : keyText(key as ObjectKey);
}

function pattern(object: string): string {
  return object.split("*").map((part) => part.replace(/[^\w/-]/g, "\\$&")).join(
    ".*",
  );
}
